// Package pairs starts the processes of a binder bench: a service manager, and
// pairs of a server and a client, each server with a service of its own. It
// keeps the driver's books: what is held before the work and after it.
//
// What the servers and clients do is the benches' affair (latency, throughput):
// they give their roles.
package pairs

import (
	"fmt"
	"strconv"

	"rota/bench/binder"
	"rota/bench/peer"
)

// ManagerRole is the role of the service manager; Main of the program has it.
const ManagerRole = "binder-manager"

// Order is what a server or a client is told first.
type Order[T any] struct {
	Device  string
	Service string // the name of the pair's service
	Number  int
	Work    T
}

// Ready is what every process says when it has opened the device, has published
// or found its service, and may begin.
type Ready struct{}

// Pair is a server and its client.
type Pair struct{ Server, Client *peer.Process }

// Manage is the role of the service manager.
func Manage(p *peer.Peer) error {
	var device string
	if err := p.Order(&device); err != nil {
		return err
	}
	binder.Quiet(1)
	d, err := binder.Open(device)
	if err == nil {
		err = d.Manage()
	}
	if err == nil {
		err = p.Say(Ready{})
	}
	if err != nil {
		return err
	}
	return d.Serve(1)
}

// Start starts the manager and n pairs and returns when all are ready: servers
// first, for the clients look for them.
func Start[T any](g *peer.Group, device string, n int, server, client string, work T) ([]Pair, error) {
	manager, err := g.Start("service manager", ManagerRole, device)
	if err == nil {
		err = manager.Hear(&Ready{})
	}
	if err != nil {
		return nil, err
	}
	pairs := make([]Pair, n)
	start := func(role string, process func(*Pair) **peer.Process, word string) error {
		for i := range pairs {
			order := Order[T]{Device: device, Service: "rota.bench." + strconv.Itoa(i), Number: i, Work: work}
			p, err := g.Start(fmt.Sprintf("%s %d", word, i), role, order)
			if err != nil {
				return err
			}
			*process(&pairs[i]) = p
		}
		for i := range pairs {
			if err := (*process(&pairs[i])).Hear(&Ready{}); err != nil {
				return err
			}
		}
		return nil
	}
	if err := start(server, func(p *Pair) **peer.Process { return &p.Server }, "server"); err != nil {
		return nil, err
	}
	return pairs, start(client, func(p *Pair) **peer.Process { return &p.Client }, "client")
}

// Serve is the first half of a server's role: it takes the order, publishes the
// service and says so. The caller then serves.
func Serve[T any](p *peer.Peer, threads int, flags uint32, handler func(Order[T]) binder.Handler) (*binder.Device, error) {
	var order Order[T]
	if err := p.Order(&order); err != nil {
		return nil, err
	}
	binder.Quiet(threads)
	d, err := binder.Open(order.Device)
	if err != nil {
		return nil, err
	}
	t := d.Thread()
	if err := t.Publish(order.Service, flags, handler(order)); err != nil {
		return nil, err
	}
	if err := t.Exit(); err != nil {
		return nil, err
	}
	return d, p.Say(Ready{})
}

// Find is the first half of a client's role: it takes the order, finds the
// service, says so, and waits for the word to begin.
func Find[T any](p *peer.Peer, threads int) (o Order[T], d *binder.Device, t *binder.Thread, h binder.Handle, err error) {
	if err = p.Order(&o); err != nil {
		return
	}
	binder.Quiet(threads)
	if d, err = binder.Open(o.Device); err != nil {
		return
	}
	t = d.Thread()
	if h, err = t.Find(o.Service); err != nil {
		return
	}
	if err = p.Say(Ready{}); err == nil {
		err = p.Order(&Ready{})
	}
	return
}
