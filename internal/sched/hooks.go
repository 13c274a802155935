package sched

import (
	"fmt"
	"log/slog"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
)

// A hook is a program on something of the kernel that not every kernel has, or
// lets anybody hook. rota does without it and says what is missing then.
type hook struct {
	program string
	without string
}

// userHook sees who changes his user, for which there is no tracepoint.
var userHook = hook{"rota_on_credentials", "rules on user: a change of user without a new program is not seen"}

const (
	noFutex = "inherit: who waits for the owner of a lock in user space is not seen"
	noLocks = "inherit: who waits for the owner of a lock in the kernel is not seen"
)

// waitHooks see who waits for whom, by reason. Those who wake each other are seen
// without.
var waitHooks = map[int][]hook{
	reasonFutex: {
		{"rota_on_futex_wait", noFutex}, {"rota_on_futex_waited", noFutex},
		{"rota_on_futex_lock", noFutex}, {"rota_on_futex_locked", noFutex},
	},
	reasonLock: {{"rota_on_lock_wait", noLocks}, {"rota_on_lock_waited", noLocks}},
}

func optionalHooks() []hook {
	all := []hook{userHook}
	for reason := range reasons {
		all = append(all, waitHooks[reason]...)
	}
	return all
}

// dropUnknownHooks leaves those out for which the kernel has nothing to hook.
func dropUnknownHooks(spec *ebpf.CollectionSpec, kernel *btf.Spec, log *slog.Logger) error {
	for _, hook := range optionalHooks() {
		prog, ok := spec.Programs[hook.program]
		if !ok {
			return fmt.Errorf("scheduler object: no program %q; build it again with: make build", hook.program)
		}
		known, err := hookable(kernel, prog)
		if err != nil {
			return err
		}
		if !known {
			log.Warn(hook.without, "missing", prog.AttachTo)
			delete(spec.Programs, hook.program)
		}
	}
	return nil
}

// hookable tells whether the kernel has the function or tracepoint of a program.
func hookable(kernel *btf.Spec, prog *ebpf.ProgramSpec) (bool, error) {
	if prog.AttachType == ebpf.AttachTraceRawTp {
		_, err := kernel.AnyTypesByName("btf_trace_" + prog.AttachTo)
		return err == nil, nil
	}
	fn, err := kernelFunc(kernel, prog.AttachTo)
	return fn != nil, err
}

// attachOptional attaches a hook unless it is, and says so if it can't be.
func (s *Scheduler) attachOptional(hook hook) {
	prog, ok := s.coll.Programs[hook.program]
	if !ok || s.hooked[hook.program] {
		return
	}
	l, err := link.AttachTracing(link.TracingOptions{Program: prog})
	if err != nil {
		s.log.Warn(hook.without, "error", err)
		return
	}
	s.hooked[hook.program] = true
	s.links = append(s.links, l)
}

// attachWaits attaches the hooks of the waits that these parameters look at. They
// stay where later ones don't: then they do nothing.
func (s *Scheduler) attachWaits(p Params) {
	bits := p.reasons()
	for reason := range reasons {
		if bits&(1<<reason) == 0 {
			continue
		}
		for _, hook := range waitHooks[reason] {
			s.attachOptional(hook)
		}
	}
}
