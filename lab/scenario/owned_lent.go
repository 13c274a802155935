package scenario

import (
	"syscall"
	"time"

	"rota/lab/guest"
)

// lend lets the owner sleep, and wakes it again.
func (r *ownedRun) lend() error {
	if err := r.configure(withCPUs(lentWord)); err != nil {
		return err
	}
	r.g.Sleep(ownedSettle)
	r.owner.pause()
	r.g.Sleep(100 * time.Millisecond)
	if err := r.hogsGet("lent_pct", time.Second); err != nil {
		return err
	}
	r.owner.signal(syscall.SIGCONT)
	return r.share("returned_pct", "", 100*time.Millisecond)
}

// lendLater lets the owner sleep, for less and for more than it takes until its CPUs are
// lent, and wakes one of its tasks.
func (r *ownedRun) lendLater() error {
	if err := r.configure(withCPUs(laterWord)); err != nil {
		return err
	}
	r.g.Sleep(ownedSettle)
	r.owner.pause()
	if err := r.hogsGet("unlent_pct", ownedUnlent*8/10); err != nil {
		return err
	}
	r.g.Sleep(ownedUnlent)
	if err := r.hogsGet("later_pct", time.Second); err != nil {
		return err
	}
	if err := r.owner.procs[0].Signal(syscall.SIGCONT); err != nil {
		return err
	}
	if err := r.hogsGet("all_back_pct", ownedUnlent); err != nil {
		return err
	}
	r.owner.signal(syscall.SIGCONT)
	return nil
}

// waits is how often its tasks had waited for a CPU, and how often for less than 1.024 ms.
func (c ownedClass) waits() (all, short float64) {
	for i, count := range c.Waits {
		all += count
		if i <= 10 {
			short += count
		}
	}
	return all, short
}

// Beats of an owner, in us: it works for so long of so much time.
const (
	ownedWork = "1000"
	ownedBeat = "20000"
)

// lendInBeats has the owner come back at even intervals: its CPUs are to be lent in between, and
// to be free again before it comes.
func (r *ownedRun) lendInBeats() error {
	r.owner.pause()
	if err := r.configure(withCPUs(soonWord)); err != nil {
		return err
	}
	r.g.Sleep(ownedSettle)
	beats := newStage(r.g, "beats")
	defer beats.stop()
	if _, err := beats.startCounting(guest.Cmd{Path: "/bin/own-nap", Args: []string{ownedWork, ownedBeat}}, 1); err != nil {
		return err
	}
	r.g.Sleep(200 * time.Millisecond) // for its class, and some beats
	before, err := r.class()
	if err != nil {
		return err
	}
	if err := r.hogsGet("beats_pct", time.Second); err != nil {
		return err
	}
	after, err := r.class()
	if err != nil {
		return err
	}
	r.g.Metric("beats_expected_pct", 100*(after.Expected-before.Expected)/(after.Returned-before.Returned))
	all, short := after.waits()
	allBefore, shortBefore := before.waits()
	r.g.Metric("beats_soon_pct", 100*(short-shortBefore)/(all-allBefore))
	r.owner.resume()
	return nil
}
