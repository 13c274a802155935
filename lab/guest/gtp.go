package guest

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Tunnel is one user of a GTP-U tunnel (3GPP TS 29.281), as the kernel's module gtp
// keeps it at one end.
type Tunnel struct {
	Netns, Device string // where the device of type gtp is
	TEID          uint32 // names the tunnel, in both directions
	User          string // IPv4 address inside
	Peer          string // IPv4 address of the other end, outside
}

// AddTunnel makes the device send the user's packets through the tunnel and accept
// those that come out of it.
func (g *Guest) AddTunnel(t Tunnel) error {
	if err := onLostThread(func() error { return addTunnel(t) }); err != nil {
		return fmt.Errorf("GTP tunnel %d of %s in %s: %w", t.TEID, t.Device, t.Netns, err)
	}
	return nil
}

func addTunnel(t Tunnel) error {
	user, err := netip.ParseAddr(t.User)
	if err != nil {
		return err
	}
	peer, err := netip.ParseAddr(t.Peer)
	if err != nil {
		return err
	}
	if err := enterNetns(t.Netns); err != nil {
		return err
	}
	// A handle of this thread's namespace, which the library can't know otherwise.
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE, unix.NETLINK_GENERIC)
	if err != nil {
		return err
	}
	defer handle.Close()
	device, err := handle.LinkByName(t.Device)
	if err != nil {
		return err
	}
	return handle.GTPPDPAdd(device, &netlink.PDP{
		Version: 1, ITEI: t.TEID, OTEI: t.TEID,
		MSAddress: user.AsSlice(), PeerAddress: peer.AsSlice(),
	})
}
