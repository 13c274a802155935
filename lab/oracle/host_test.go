package oracle

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// FuzzArithmetic holds the scheduler's arithmetic, compiled for the host, to
// the model here: joins, charges and departures give the same V, and place a
// task where placed does. What each of its functions does is tested beside it.
func FuzzArithmetic(f *testing.F) {
	driver := compile(f)
	for seed := range uint64(8) {
		f.Add(seed, uint16(300))
	}
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16) {
		d := newDuet(seed)
		for range steps % 1000 {
			d.step()
		}
		d.compare(t, driver)
	})
}

// compile builds the program that executes one command of the arithmetic per
// line.
func compile(t testing.TB) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Fatalf("C compiler: %v; install it with: make setup", err)
	}
	folder := filepath.Join("..", "..", "bpf")
	source := filepath.Join(folder, "hosttest", "testdata", "driver.c")
	// The result of a test is kept until a file changes that the test itself read.
	for _, name := range []string{source, filepath.Join(folder, "eevdf.h")} {
		if _, err := os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(t.TempDir(), "driver")
	if said, err := exec.Command(cc, "-O1", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("compile driver: %v\n%s", err, said)
	}
	return program
}

// duet is the model's queue and the commands that do the same to the other.
type duet struct {
	random *rand.Rand
	q      *queue
	order  []*client // as the other one counts them
	in     bytes.Buffer
	expect []answer
	next   uint32
}

// answer is what the model says after a command: V.
type answer struct {
	what  string
	right uint64
	skip  bool
	place uint64 // what the command returns, 0: not said
}

func newDuet(seed uint64) *duet {
	d := &duet{random: rand.New(rand.NewPCG(seed, 5)), q: emptyQueue()}
	d.say("start", origin, 0, answer{skip: true})
	return d
}

func (d *duet) say(name string, a, b uint64, right answer) {
	fmt.Fprintln(&d.in, name, a, b)
	right.what = fmt.Sprint(name, " ", a, " ", b)
	d.expect = append(d.expect, right)
}

// now expects the model's V of a queue that somebody is in.
func (d *duet) now() answer {
	return answer{right: d.q.now(), skip: d.q.weight == 0}
}

func (d *duet) step() {
	switch n := d.random.IntN(10); {
	case len(d.order) == 0 || n < 2 && len(d.order) < 60:
		d.join()
	case n < 3 && len(d.order) > 1:
		i := d.random.IntN(len(d.order))
		d.q.leave(d.order[i])
		d.order = append(d.order[:i:i], d.order[i+1:]...)
		d.say("leave", uint64(i), 0, d.now())
	default:
		i := d.random.IntN(len(d.order))
		if best := d.q.best(d.q.now(), 0, nil); best != nil {
			for j, c := range d.order {
				if c == best {
					i = j
				}
			}
		}
		ns := d.random.Uint64N(10_000_000)
		d.q.charge(d.order[i], ns)
		d.say("run", uint64(i), ns, d.now())
	}
}

// join lets a task join that is owed something. The unit that a task gets on
// top so that it is eligible is none of the arithmetic's.
func (d *duet) join() {
	d.next++
	weights := []uint32{1, 15, 335, 1024, 3121, 88761}
	c := &client{tid: d.next, weight: weights[d.random.IntN(len(weights))], request: 3_000_000, state: waiting}
	lag := d.random.Int64N(50_000_000)
	if d.q.weight == 0 {
		lag = 0 // nobody owes it anything
	}
	d.say("rebase", 0, 0, d.now())
	d.say("place", uint64(lag), uint64(c.weight), d.now())
	if c.v = d.q.now(); d.q.weight != 0 {
		c.v = placed(c.v, lag, d.q.weight, c.weight) + 1
		d.expect[len(d.expect)-1].place = c.v
	}
	c.deadline = c.v + c.requestVT()
	d.q.join(c)
	d.order = append(d.order, c)
	d.say("join", uint64(c.weight), 0, d.now())
}

func (d *duet) compare(t *testing.T, driver string) {
	var out bytes.Buffer
	cmd := exec.Command(driver)
	cmd.Stdin, cmd.Stdout = &d.in, &out
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	for i, right := range d.expect {
		var result, zero, weight, now uint64
		var sum int64
		if _, err := fmt.Fscanln(&out, &result, &zero, &sum, &weight, &now); err != nil {
			t.Fatalf("answer to %s: %v", right.what, err)
		}
		if right.place != 0 && right.place != result {
			t.Fatalf("command %d, %s: placed at %d, the model has %d", i, right.what, result, right.place)
		}
		if !right.skip && now != right.right {
			t.Fatalf("command %d, %s: V %d, the model has %d (%+d)", i, right.what, now, right.right, apart(right.right, now))
		}
	}
}
