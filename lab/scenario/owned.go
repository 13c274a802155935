package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"rota/lab/guest"
	"rota/lab/scenario/output"
)

// rowShared is rota with the same class, but without CPUs of its own.
const rowShared = "rota-shared"

const (
	// ownedWithin is how soon others must have left a CPU that has got an owner.
	ownedWithin = 10 * time.Millisecond
	// ownedSettle is how soon CPUs are chosen anew when one went: rota looks each second.
	ownedSettle = 2500 * time.Millisecond
	ownedHogs   = 2 // tasks of the owner, and CPUs that it has
	// ownedUnlent is how long a class may not run before its CPUs are lent, in one step.
	ownedUnlent = 100 * time.Millisecond
)

// ownedHalf is what hogs get of all CPUs while half of them are kept. In so short a time what
// the daemon does shows: some ms of 400, with its looks at the machine every second. A CPU that
// stays lent, or idle beside hogs that wait, is 25 % more or less.
var ownedHalf = Bound{AtLeast: 45, AtMost: 51}

const (
	sharedConfig = `classes:
  - {name: owner, tier: priority}
rules:
  - {match: {comm: "own-*"}, class: owner}
`
	ownedWord = `cpus: {dedicated: 2}`
	lentWord  = `cpus: {dedicated: 2, lend: true}`
	laterWord = `cpus: {dedicated: 2, lend: true, lendAfter: 100ms}`
	soonWord  = `cpus: {dedicated: 2, lend: true, lendAfter: 1ms}`
)

// withCPUs is sharedConfig with CPUs for the class.
func withCPUs(word string) string { return withCPUsOf(sharedConfig, word) }

// withCPUsOf is a configuration with CPUs for its first priority class.
func withCPUsOf(config, word string) string {
	return strings.Replace(config, "tier: priority", "tier: priority, "+word, 1)
}

// owned measures what a class gets that has CPUs of its own, what others have there, and
// what becomes of it when a CPU goes and when CPUs are lent.
func owned() Scenario {
	only := func(b Bound) []Bound { b.Row = rowClasses; return []Bound{b} }
	const beside, lent = "two always runnable tasks of the owner of two CPUs, beside 8 hogs", "CPUs that are lent"
	const beats = "two CPUs that are lent once the owner has not run for 1 ms, and it works for 1 ms of every 20"
	const later = "two CPUs that are lent once the owner has not run for 100 ms"
	return Scenario{
		Name:     "owned",
		Title:    "CPUs of a class",
		Question: "What does a class get that has CPUs of its own, do all others leave them, and what do they get back?",
		Rows: []Row{
			{Name: rowKernel, Scheduler: "kernel"},
			{Name: rowShared, Scheduler: "rota", Config: sharedConfig, About: "with a priority class without CPUs of its own"},
			{Name: rowClasses, Scheduler: "rota", Config: sharedConfig},
		},
		Metrics: []Metric{
			{Name: "owner_pct", Group: beside, Label: "of two CPUs, the owner's tasks get", Better: 1, Bounds: only(Bound{AtLeast: 99})},
			{Name: "others_pct", Group: beside, Label: "of the others, all hogs get", Bounds: only(Bound{AtLeast: 98})},
			{Name: "on_time", Group: beside, Label: "hogs ran there for 0 ns from 10 ms after the reload on (1 = yes)", Bounds: only(Bound{AtLeast: 1})},
			{Name: "offline_pct", Group: "one of its CPUs goes offline", Label: "of two CPUs, chosen anew, the owner's tasks get", Bounds: only(Bound{AtLeast: 98})},
			{Name: "lent_pct", Group: lent, Label: "while the owner sleeps, hogs get of all four", Better: 1, Bounds: only(Bound{AtLeast: 98})},
			{Name: "returned_pct", Group: lent, Label: "of the first 100 ms after that, the owner's tasks get", Better: 1, Bounds: only(Bound{AtLeast: 97})},
			{Name: "unlent_pct", Group: later, Label: "in the first 80 ms of its sleep, hogs get of all four", Bounds: only(ownedHalf)},
			{Name: "later_pct", Group: later, Label: "in a second after that", Better: 1, Bounds: only(Bound{AtLeast: 98})},
			{Name: "all_back_pct", Group: later, Label: "in 100 ms after one of its two tasks wakes", Bounds: only(ownedHalf)},
			{Name: "beats_pct", Group: beats, Label: "hogs get of all four", Better: 1, Bounds: only(Bound{AtLeast: 85, AtMost: 97})},
			{Name: "beats_expected_pct", Group: beats, Label: "of its wake-ups, so many found the CPUs free", Better: 1, Bounds: only(Bound{AtLeast: 90})},
			{Name: "beats_soon_pct", Group: beats, Label: "so many waited for less than 1 ms, by rota's own account", Better: 1, Bounds: only(Bound{AtLeast: 100})},
			{Name: "still_run", Group: "its CPUs are taken away, of four tasks", Label: "each of them goes on (1 = yes)", Bounds: only(Bound{AtLeast: 1})},
		},
		Loads: []string{"hog", "nap"},
		Limit: 60 * time.Second,
		Run:   runOwned,
	}
}

// ownedRun are the tasks of the owner and the others.
type ownedRun struct {
	g             *guest.Guest
	owner, others *stage
}

func runOwned(g *guest.Guest) error {
	for _, load := range []string{"hog", "nap"} {
		if err := os.Symlink(load, "/bin/own-"+load); err != nil {
			return err
		}
	}
	r := &ownedRun{g: g, owner: newStage(g, "owner"), others: newStage(g, "others")}
	defer r.owner.stop()
	defer r.others.stop()
	if _, err := r.others.startHogs(2*g.CPUs, guest.Cmd{}); err != nil {
		return err
	}
	if _, err := r.owner.startHogs(ownedHogs, guest.Cmd{Path: "/bin/own-hog"}); err != nil {
		return err
	}
	g.Sleep(200 * time.Millisecond) // for their class
	if g.Row.Name != rowClasses {
		return r.share("owner_pct", "others_pct", time.Second)
	}
	for _, step := range []func() error{r.dedicate, r.offline, r.lend, r.lendLater, r.lendInBeats, r.remove} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// dedicate gives the class its CPUs and measures what it and the others have of it.
func (r *ownedRun) dedicate() error {
	if err := r.configure(withCPUs(ownedWord)); err != nil {
		return err
	}
	// The first look since: the daemon answers with counters that are up to 100 ms old.
	r.g.Sleep(ownedWithin)
	before, err := r.strays()
	if err != nil {
		return err
	}
	if _, err := r.owns(); err != nil {
		return err
	}
	if err := r.share("owner_pct", "others_pct", time.Second); err != nil {
		return err
	}
	after, err := r.strays()
	if err != nil {
		return err
	}
	r.g.Event("strays", fmt.Sprintf("%d us until 10 ms after the reload, %d us a second later", before, after))
	r.g.Metric("on_time", truth(before == after))
	return nil
}

// offline takes one of the CPUs away: the class must get another.
func (r *ownedRun) offline() error {
	cpus, err := r.owns()
	if err != nil {
		return err
	}
	last := cpus[len(cpus)-1]
	if err := setOnline(last, "0"); err != nil {
		return err
	}
	r.g.Sleep(ownedSettle)
	if err := r.share("offline_pct", "", time.Second); err != nil {
		return err
	}
	return setOnline(last, "1")
}

// hogsGet measures what the others get of all CPUs, in percent.
func (r *ownedRun) hogsGet(metric string, d time.Duration) error {
	used, err := r.others.cpuTime(d)
	if err != nil {
		return err
	}
	r.g.Metric(metric, 100*used.Seconds()/(float64(r.g.CPUs)*d.Seconds()))
	return nil
}

// remove takes the CPUs away while more tasks wait for them than they are.
func (r *ownedRun) remove() error {
	if _, err := r.owner.startHogs(2, guest.Cmd{Path: "/bin/own-hog"}); err != nil {
		return err
	}
	r.g.Sleep(200 * time.Millisecond) // for their class
	if err := r.configure(sharedConfig); err != nil {
		return err
	}
	done, err := r.owner.progress(time.Second)
	if err != nil {
		return err
	}
	r.g.Metric("still_run", truth(!slices.ContainsFunc(done[:r.owner.slots], func(s output.Slot) bool { return s.Loops == 0 })))
	return nil
}

// share measures what the owner's tasks get of as many CPUs, and the others of the rest.
func (r *ownedRun) share(owner, others string, d time.Duration) error {
	before, err := r.others.cpuUsed()
	if err != nil {
		return err
	}
	used, err := r.owner.cpuTime(d)
	if err != nil {
		return err
	}
	after, err := r.others.cpuUsed()
	if err != nil {
		return err
	}
	r.g.Metric(owner, 100*used.Seconds()/(ownedHogs*d.Seconds()))
	if others != "" {
		r.g.Metric(others, 100*(after-before).Seconds()/(float64(r.g.CPUs-ownedHogs)*d.Seconds()))
	}
	return nil
}

// configure puts a configuration in force.
func (r *ownedRun) configure(config string) error {
	if err := os.WriteFile(rotaConfig, []byte(config), 0o644); err != nil {
		return err
	}
	if out, err := r.g.Rota("reload"); err != nil {
		return fmt.Errorf("rota reload: %w: %s", err, out.Stderr)
	}
	return nil
}

// ownedStatus is what the daemon says of classes and CPUs.
type ownedStatus struct {
	Classes []ownedClass `json:"classes"`
	CPUs    []struct {
		Stray int64 `json:"strayMicros"`
	} `json:"cpus"`
}

// ownedClass is what it says of one.
type ownedClass struct {
	Name     string  `json:"name"`
	CPUs     []int   `json:"cpus"`
	Note     string  `json:"cpusNote"`
	Returned float64 `json:"cpusReturned"`
	Expected float64 `json:"cpusExpected"`
	// Element i: waits in [2^(i-1), 2^i) us.
	Waits []float64 `json:"waitHistogram"`
}

func (r *ownedRun) status() (status ownedStatus, err error) {
	// Not on an owned CPU, where the real-time task that starts it may be: it would stray
	// there itself, until it is sent away.
	out, err := r.g.RotaOn("0-1", "status", "--json")
	if err != nil {
		return status, err
	}
	return status, json.Unmarshal([]byte(out.Stdout), &status)
}

// owns are the CPUs of the class, as many as it wants.
func (r *ownedRun) owns() ([]int, error) {
	owner, err := r.class()
	if err == nil && len(owner.CPUs) != ownedHogs {
		err = fmt.Errorf("class owner has CPUs %v, must be %d of them: %s", owner.CPUs, ownedHogs, owner.Note)
	}
	return owner.CPUs, err
}

// class is what the daemon says of the owner.
func (r *ownedRun) class() (ownedClass, error) {
	status, err := r.status()
	if err != nil {
		return ownedClass{}, err
	}
	for _, class := range status.Classes {
		if class.Name == "owner" {
			return class, nil
		}
	}
	return ownedClass{}, errors.New("rota status --json: no class owner in it")
}

// strays is the time in us that others had on owned CPUs on their way out.
func (r *ownedRun) strays() (sum int64, err error) {
	status, err := r.status()
	for _, cpu := range status.CPUs {
		sum += cpu.Stray
	}
	return sum, err
}
