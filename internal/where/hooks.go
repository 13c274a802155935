package where

import (
	"fmt"
	"io"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// hooks are the programs that note which interrupt each CPU serves. They run at each of
// the machine's interrupts, which costs more than the calls of a hot function do. So they
// are let go once it has been executed by tasks alone, and taken up again, for good, at the
// first call in an interrupt. Which interrupts the calls until then were in is not known.
type hooks struct {
	ends, begins []io.Closer // where they run now
	needed       bool        // the function is executed in interrupts
	let          bool        // they were let go
	attach       func(program string) (io.Closer, error)
	sleep        func(time.Duration)
}

// longestInterrupt is how long ends stay behind beginnings: the kernel leaves soft
// interrupts that take more than 2 ms to a task of theirs.
const longestInterrupt = 20 * time.Millisecond

// newHooks makes hooks of the programs of a collection, none of them attached.
func newHooks(programs map[string]*ebpf.Program) *hooks {
	return &hooks{sleep: time.Sleep, attach: func(name string) (io.Closer, error) {
		return link.AttachTracing(link.TracingOptions{Program: programs[name]})
	}}
}

// take attaches all, ends before beginnings: nothing is noted that does not end.
func (h *hooks) take() error {
	for _, set := range []struct {
		to       *[]io.Closer
		programs []string
	}{
		{&h.ends, []string{"where_softirq_end", "where_hardirq_end"}},
		{&h.begins, []string{"where_softirq", "where_hardirq"}},
	} {
		for _, name := range set.programs {
			l, err := h.attach(name)
			if err != nil {
				return fmt.Errorf("attach %s: %w", name, err)
			}
			*set.to = append(*set.to, l)
		}
	}
	return nil
}

// letGo detaches all, beginnings first, and ends once what has begun has ended.
func (h *hooks) letGo() {
	if len(h.begins) == 0 {
		return
	}
	closeAll(&h.begins)
	h.sleep(longestInterrupt)
	closeAll(&h.ends)
}

func (h *hooks) close() {
	closeAll(&h.begins)
	closeAll(&h.ends)
}

func closeAll(list *[]io.Closer) {
	for _, l := range *list {
		l.Close()
	}
	*list = nil
}

// follow lets go or takes up by what was counted so far: calls of tasks and in interrupts.
func (h *hooks) follow(byTasks, inInterrupts uint64) error {
	switch {
	case h.needed:
	case inInterrupts > 0:
		h.needed = true
		if h.let {
			return h.take()
		}
	case byTasks > 0 && !h.let:
		h.let = true
		h.letGo()
	}
	return nil
}
