package sched

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// A source is a set of programs on something of the kernel that not every kernel
// has, or lets anybody hook. Each is loaded by itself, and only when it is wanted:
// rota does without those that can't be, and says what is missing then.
type source struct {
	programs []string // those that end a wait before those that begin one
	reasons  uint32   // the waits that it sees, 1 << reason, or wantCounters; 0: it is always wanted
	without  string   // what is not seen without
	modules  []string // one of which has what it hooks and may come at any time; none: the kernel has it
}

var sources = []source{
	{
		programs: []string{"rota_on_rename"},
		without:  "rules on comm: a thread that gets another name is seen only where it next stops to run",
	},
	{
		programs: []string{"rota_on_credentials"},
		without:  "rules on user: a change of user without a new program is seen only where the task next stops to run",
	},
	{
		programs: withTwins("rota_on_futex_waited", "rota_on_futex_locked", "rota_on_futex_wait", "rota_on_futex_lock"),
		reasons:  1 << reasonFutex,
		without:  "inherit: who waits for the owner of a lock in user space is not seen",
	},
	{
		programs: []string{"rota_on_lock_waited", "rota_on_lock_wait"},
		reasons:  1 << reasonLock,
		without:  "inherit: who waits for the owner of a lock in the kernel is not seen",
	},
	{
		programs: []string{"rota_on_binder_done", "rota_on_binder_wait", "rota_on_binder_received", "rota_on_binder_call"},
		reasons:  1 << reasonBinder,
		without:  "inherit: who waits for the answer to a binder call is not seen",
		modules:  []string{"binder_linux", "binder"},
	},
	{
		programs: []string{"rota_on_switch"},
		reasons:  wantCounters,
		without:  "frequency fairness: what the processor counts is not read",
	},
}

// withTwins puts the twin of each program behind it, see bpf/wait.bpf.h.
func withTwins(programs ...string) (all []string) {
	for _, name := range programs {
		all = append(all, name, name+"_twin")
	}
	return all
}

// optionalPrograms are those of all sources.
func optionalPrograms() (names []string) {
	for _, src := range sources {
		names = append(names, src.programs...)
	}
	return names
}

// present tells whether what a source hooks is there by now.
func (src source) present(sysfs string) bool {
	for _, module := range src.modules {
		dir := filepath.Join(sysfs, "module", module)
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		// One that is part of the kernel has no state.
		if state := readLine(filepath.Join(dir, "initstate")); state == "live" || state == "" {
			return true
		}
	}
	return len(src.modules) == 0
}

// want attaches what these waits ask for. What is attached stays where later ones
// don't want it: then it does nothing.
func (s *Scheduler) want(reasons uint32, o *image) {
	s.hooks.Lock()
	s.wanted = reasons | s.always
	s.hooks.Unlock()
	s.attachSources(o)
}

// wantAlso is want for one thing more that stays wanted. It fails where its programs could
// not be attached, now or before.
func (s *Scheduler) wantAlso(thing uint32) error {
	s.hooks.Lock()
	s.always |= thing
	s.wanted |= thing
	s.hooks.Unlock()
	s.attachSources(nil)
	s.hooks.Lock()
	defer s.hooks.Unlock()
	for i, src := range sources {
		if src.reasons&thing != 0 && s.refused[i] != nil {
			return s.refused[i]
		}
	}
	return nil
}

// attachSources attaches what is wanted, is there, and was not tried yet. Who has no
// open image says nil. It returns true when nothing is left to be tried.
func (s *Scheduler) attachSources(o *image) bool {
	s.hooks.Lock()
	defer s.hooks.Unlock()
	for i, src := range sources {
		if s.tried[i] || s.closed || src.reasons != 0 && src.reasons&s.wanted == 0 || !src.present("/sys") {
			continue
		}
		s.tried[i] = true
		if err := s.attachSource(src, &o); err != nil {
			s.refused[i] = err
			s.log.Warn(src.without, "error", err, "fix", src.fix())
		}
	}
	return s.closed || len(s.tried) == len(sources)
}

// fix is what may help where a source can't be attached.
func (src source) fix() string {
	if has, err := capabilities(); len(src.modules) > 0 && err == nil && !has(unix.CAP_SYS_ADMIN) {
		return "what a module has is seen with CAP_SYS_ADMIN only: systemctl edit rota, and write: [Service] CapabilityBoundingSet=CAP_SYS_ADMIN"
	}
	return "this kernel has nothing to hook, or lets nobody; the rest works"
}

// attachSource loads the programs of a source, on the maps of the scheduler, and
// attaches them. It opens the image if it is not open.
func (s *Scheduler) attachSource(src source, o **image) (err error) {
	if *o == nil {
		if *o, err = openImage(); err != nil {
			return err
		}
	}
	spec := (*o).spec.Copy()
	if err := s.makeRoom(spec); err != nil {
		return err
	}
	maps.DeleteFunc(spec.Programs, func(name string, _ *ebpf.ProgramSpec) bool { return !slices.Contains(src.programs, name) })
	delete(spec.Maps, "rota_ops")
	shared := map[string]*ebpf.Map{}
	for name := range spec.Maps {
		shared[name] = s.coll.Maps[name]
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: (*o).cache, MapReplacements: shared})
	if err != nil {
		return err
	}
	defer coll.Close() // the links hold the programs
	links, err := attachAll(src.programs, coll)
	s.links = append(s.links, links...)
	return err
}

// attachAll attaches all of these programs, or none.
func attachAll(names []string, coll *ebpf.Collection) (links []io.Closer, err error) {
	for _, name := range names {
		l, err := link.AttachTracing(link.TracingOptions{Program: coll.Programs[name]})
		if err != nil {
			for _, l := range links {
				l.Close()
			}
			return nil, fmt.Errorf("attach %s: %w", name, err)
		}
		links = append(links, l)
	}
	return links, nil
}
