package daemon

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"rota/internal/api"
	"rota/internal/identity"
	"rota/internal/sched"
)

// session is one time that the scheduler is attached.
type session struct {
	scheduler Scheduler
	attached  time.Time
	tasks     *tasks
	functions *functions

	mu      sync.Mutex
	closed  bool
	planned *plan
	// base is what a slot had counted when its class took it.
	base  map[int]sched.ClassStats
	stats sched.Stats
	read  time.Time // when stats were read
	// speeds is how fast the CPUs run, as the scheduler has it; slowNote says why it
	// does not know. Stale: the scheduler has others.
	speeds      []uint32
	speedsStale bool
	slowNote    string
	counts      counting
}

func (d *Daemon) newSession(s Scheduler, p *plan) *session {
	out := &session{scheduler: s, attached: time.Now(), planned: p, base: map[int]sched.ClassStats{}}
	out.tasks = &tasks{
		proc:    procfs{root: d.Proc},
		names:   &identity.Users{Path: d.Passwd},
		hold:    holdThread,
		set:     s.SetClass,
		known:   newKnown(s, d.Proc),
		self:    uint32(os.Getpid()),
		log:     d.Log,
		pending: map[uint32]sched.Event{},
		wake:    make(chan struct{}, 1),
	}
	out.functions = d.newFunctions(out.tasks)
	out.tasks.executes = out.functions.of
	out.tasks.use(p.rules, p.own())
	return out
}

// work follows the events until ctx ends. What it returns is closed when no
// task is looked at any more.
func (s *session) work(ctx context.Context) <-chan struct{} {
	go s.tasks.collect(s.scheduler.Events())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.tasks.work(ctx)
	}()
	return done
}

func (s *session) plan() *plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.planned
}

// configure puts p in force for tasks that are classified from now on.
func (s *session) configure(p *plan) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fs.ErrClosed
	}
	now, statsErr := s.scheduler.Stats()
	if err := s.scheduler.Configure(p.params()); err != nil {
		return err
	}
	for i, slot := range p.slots {
		taken := i >= len(s.planned.slots) || s.planned.slots[i].class.Name != slot.class.Name
		if taken && statsErr == nil && i < len(now.Classes) {
			s.base[i] = now.Classes[i]
		}
	}
	s.planned, s.read = p, time.Time{}
	s.tasks.use(p.rules, p.own())
	return nil
}

// freshness is how old counters may be: many clients cost no more than one.
const freshness = 100 * time.Millisecond

// counters reads the counters together with the plan that they belong to.
func (s *session) counters() (sched.Stats, *plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return sched.Stats{}, s.planned, fs.ErrClosed
	}
	if time.Since(s.read) < freshness {
		return s.stats, s.planned, nil
	}
	stats, err := s.scheduler.Stats()
	if err != nil {
		return sched.Stats{}, s.planned, err
	}
	for i := range stats.Classes {
		if b, ok := s.base[i]; ok {
			stats.Classes[i] = less(stats.Classes[i], b)
		}
	}
	s.stats, s.read = stats, time.Now()
	return stats, s.planned, nil
}

// less is what a counted since b. The longest wait can't be taken apart: where none was longer than
// those before b, the bound of the highest bucket in use stands for it.
func less(a, b sched.ClassStats) sched.ClassStats {
	a.Runtime -= b.Runtime
	a.Progress -= b.Progress
	a.Waited -= b.Waited
	a.Counted -= b.Counted
	a.Dispatches -= b.Dispatches
	a.Preempting -= b.Preempting
	a.Preempted -= b.Preempted
	a.CapHits -= b.CapHits
	a.Rescues -= b.Rescues
	a.Returns -= b.Returns
	a.Expected -= b.Expected
	waits := append([]uint64(nil), a.WaitHist...)
	for i := range min(len(waits), len(b.WaitHist)) {
		waits[i] -= b.WaitHist[i]
	}
	a.WaitHist = waits
	if a.WaitMax == b.WaitMax {
		a.WaitMax = min(a.WaitMax, time.Duration(api.LongestWait(waits)*float64(time.Microsecond)))
	}
	return a
}

// provoke makes the scheduler fail, when it can.
func (s *session) provoke() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	faulty, can := s.scheduler.(interface{ DebugFault() error })
	if s.closed || !can {
		return errors.ErrUnsupported
	}
	return faulty.DebugFault()
}

// close detaches the scheduler, after which nothing reaches it.
func (s *session) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.scheduler.Close()
	if errors.Is(err, fs.ErrClosed) {
		return nil
	}
	return err
}
