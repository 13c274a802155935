package scenario

import (
	"fmt"
	"time"

	"rota/lab/guest"
)

// limits lets hogs wait for their cgroup's cpu.max while a CPU goes away and
// comes back, while one of them leaves the cgroup and comes back, and until the
// limit is taken away.
func limits(r *faultRun) error {
	limited, err := r.g.Cgroup("faults/limited")
	if err != nil {
		return err
	}
	free, err := r.g.Cgroup("faults/free")
	if err != nil {
		return err
	}
	s := newStage(r.g, "limits")
	defer s.stop()
	if _, err := s.startHogs(r.g.CPUs, guest.Cmd{Cgroup: limited.Path}); err != nil {
		return err
	}
	if err := limited.SetMax(10 * time.Millisecond); err != nil {
		return err
	}
	r.g.Sleep(200 * time.Millisecond)
	if err := r.replug(r.g.CPUs - 1); err != nil {
		return err
	}
	if err := s.limitedTo(0.1, time.Second); err != nil {
		return err
	}
	if err := s.excursion(free, limited); err != nil {
		return err
	}
	if err := limited.SetMax(0); err != nil {
		return err
	}
	loops, err := s.work(time.Second)
	if err != nil {
		return err
	}
	for i, n := range loops {
		if n == 0 {
			return fmt.Errorf("limited hog %d: did no work for a second after the limit was taken away", i)
		}
	}
	return r.survived()
}

// limitedTo checks that all loads of the stage together have no more than that
// share of a CPU in the next d; what a period took too much the next ones pay.
func (s *stage) limitedTo(share float64, d time.Duration) error {
	had, err := s.cpuTime(d)
	if err != nil {
		return err
	}
	if got := had.Seconds() / d.Seconds(); got > 1.5*share {
		return fmt.Errorf("cpu.max of %.0f %%: the cgroup had %.1f %% of a CPU", 100*share, 100*got)
	}
	return nil
}

// excursion moves the first hog out of its cgroup, where it must run, and back,
// where it must not.
func (s *stage) excursion(free, limited guest.Cgroup) error {
	pid := s.procs[0].Pid
	if err := free.Add(pid); err != nil {
		return err
	}
	loops, err := s.work(time.Second)
	if err != nil {
		return err
	}
	if loops[0] == 0 {
		return fmt.Errorf("hog 0: did no work for a second after it had left its cgroup")
	}
	if err := limited.Add(pid); err != nil {
		return err
	}
	s.g.Sleep(200 * time.Millisecond)
	return s.limitedTo(0.1, time.Second)
}

// replug takes a CPU offline and back.
func (r *faultRun) replug(cpu int) error {
	for _, online := range []string{"0", "1"} {
		if err := setOnline(cpu, online); err != nil {
			return err
		}
		r.g.Sleep(20 * time.Millisecond)
	}
	return nil
}
