package latency

import (
	"fmt"
	"os"

	"rota/bench/binder"
	"rota/bench/binder/pairs"
	"rota/bench/level"
	"rota/bench/peer"
)

// Roles of the processes.
const (
	serverRole = "binder-latency-server"
	clientRole = "binder-latency-client"
)

// ServerName is what the threads of a server are called, by its role.
const ServerName = "bench-server"

// serverThreads is how many threads a server has: with the original's libraries
// the first call makes the driver ask for a second one, and then one is always
// free.
const serverThreads = 2

// order is what servers and clients need to know of the options.
type order struct {
	Kind       Kind
	Iterations int
	DeadlineNs int64
	Verbose    bool
	Trace      bool
	Compat     bool
	Extended   bool
}

func orderOf(o Options) order {
	return order{o.Kind, o.Iterations, o.Deadline.Nanoseconds(), o.Verbose, o.Trace, o.Compat, o.Extended}
}

// serve is the role of a server.
func serve(p *peer.Peer) error {
	var flags uint32 = binder.NodeFlags
	var d *binder.Device
	d, err := pairs.Serve(p, serverThreads, flags|binder.InheritRT, func(o pairs.Order[order]) binder.Handler {
		return func(t *binder.Thread, call *binder.Message, reply *binder.Parcel) error {
			now := int64(t.Now())
			if o.Work.Verbose {
				t.LetGo() // it writes
			}
			return answer(now, o.Work, call, reply)
		}
	})
	if err != nil {
		return err
	}
	d.Brief = true
	return d.Serve(serverThreads)
}

// answer tells the caller when its call arrived, and at which level and where
// it is answered.
func answer(now int64, o order, call *binder.Message, reply *binder.Parcel) error {
	l, err := level.Mine()
	if err != nil {
		return err
	}
	cpu := level.CPU()
	if o.Verbose && call.Code == codeCall {
		dump("binder", l, o.Compat)
		r := call.Read()
		if caller := r.Uint32(); caller != l.Priority {
			fmt.Fprintf(os.Stdout, "err priority_caller:%d, priority:%d\n", caller, l.Priority)
		}
	}
	reply.Uint64(uint64(now))
	reply.Uint32(l.Policy)
	reply.Uint32(l.Priority)
	reply.Uint32(uint32(l.Nice))
	reply.Uint32(cpu)
	return nil
}

// dump writes what the original writes with -v. It knows three policies by
// name; we know all.
func dump(who string, l level.Level, compat bool) {
	name := l.Name()
	if compat && l.Policy > level.RR {
		name = "???"
	}
	fmt.Fprintf(os.Stdout, "--------------------------------------------------\n%-12s pid: %d tid: %d cpu: %d\n%-12s%d\n",
		who, os.Getpid(), threadID(), level.CPU(), name, l.Priority)
}
