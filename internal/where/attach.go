package where

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// attachKprobes hooks all functions of that name in that place, by their addresses:
// other places may have the name, too. Where the kernel hides addresses, the name
// must do.
func (w *Watch) attachKprobes(f Function) error {
	if len(f.addresses) == 0 && f.shared {
		return errors.New("the kernel hides the addresses of functions, and several have this name: sysctl kernel.kptr_restrict=1")
	}
	if len(f.addresses) == 0 {
		l, err := link.Kprobe(f.Name, w.entry, nil)
		if err == nil {
			w.links = append(w.links, l)
		}
		return err
	}
	for _, address := range f.addresses {
		l, err := attachKprobe(w.entry, address)
		if err != nil {
			return fmt.Errorf("at %#x: %w", address, err)
		}
		w.links = append(w.links, l)
	}
	return nil
}

// kprobes is where the kernel says which kind of event probes are.
const kprobes = "/sys/bus/event_source/devices/kprobe"

// attachKprobe hooks the code at an address. The library does that by name only.
func attachKprobe(program *ebpf.Program, address uint64) (link.Link, error) {
	text, err := os.ReadFile(filepath.Join(kprobes, "type"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w: boot a kernel that is built with CONFIG_KPROBE_EVENTS=y", ebpf.ErrNotSupported, err)
	}
	kind, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("%s/type: %w", kprobes, err)
	}
	attributes := unix.PerfEventAttr{Type: uint32(kind), Ext2: address}
	attributes.Size = uint32(unsafe.Sizeof(attributes))
	// On all CPUs, whichever is named.
	event, err := unix.PerfEventOpen(&attributes, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open the probe: %w", err)
	}
	defer unix.Close(event) // the link holds it
	return link.AttachRawLink(link.RawLinkOptions{Target: event, Program: program, Attach: ebpf.AttachPerfEvent})
}

// noTypesError says that the kernel does not describe its types.
type noTypesError struct{ err error }

func (e *noTypesError) Error() string { return "kernel: does not describe its types: " + e.err.Error() }
func (e *noTypesError) Unwrap() error { return e.err }

// withFix adds what to do about an error.
func withFix(err error) error {
	var types *noTypesError
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: run as root", err)
	case errors.As(err, &types):
		return fmt.Errorf("%w: boot a kernel that is built with CONFIG_DEBUG_INFO_BTF=y", err)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EBUSY), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EILSEQ):
		return fmt.Errorf("%w: %s", err, elsewhere)
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, btf.ErrNotFound):
		return fmt.Errorf("%w: boot a kernel 6.1 or newer", err)
	}
	return err
}
