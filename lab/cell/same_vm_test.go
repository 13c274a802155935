//go:build vm

package cell

import (
	"context"
	"os/exec"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rota/lab/guest"
	"rota/lab/machine"
)

// work is a load whose figures depend on the order of everything.
func work(g *guest.Guest) error {
	bench, err := g.Start(guest.Cmd{Path: "hackbench", Args: []string{"-g", "2", "-l", "100"}})
	if err != nil {
		return err
	}
	out, err := g.Run(guest.Cmd{Path: "cyclictest", Args: []string{"-q", "-l", "200", "-i", "1000", "--policy=other"}})
	if err != nil {
		return err
	}
	g.Log("%s", out.Stdout)
	b, err := bench.Wait()
	g.Log("%s", b.Stdout)
	g.Metric("hackbench_s", b.Elapsed.Seconds())
	g.Metric("cyclictest_s", out.Elapsed.Seconds())
	return err
}

// rest sleeps and is woken, often on no CPU at all: then QEMU's main loop lets the time pass.
func rest(g *guest.Guest) error {
	out, err := g.Run(guest.Cmd{Path: "cyclictest", Args: []string{"-t", "4", "-l", "20000", "-i", "150", "-d", "37", "--policy=other", "-q"}})
	g.Log("%s", out.Stdout)
	g.Metric("cyclictest_s", out.Elapsed.Seconds())
	return err
}

// The lab's promise: the same inputs give the same bytes.
func TestSameSeedSameBytes(t *testing.T) {
	t.Parallel()
	run := func(seed int64) Outcome {
		out, err := boot(t, "work", func(c *Cell) {
			c.Tools = []string{"hackbench", "cyclictest"}
			c.Plan.Seed = seed
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first, again, other := run(1), run(1), run(2)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the same seed gave two results:\n%s", diff)
	}
	if cmp.Equal(first.Results, other.Results) {
		t.Error("another seed gave the same result")
	}
	if first.Results.Metrics["hackbench_s"] <= 0 {
		t.Errorf("hackbench took %v s", first.Results.Metrics["hackbench_s"])
	}
}

// And so they do when the host has other work: two machines at a time, beside a loop for each CPU.
func TestSameBytesOnABusyHost(t *testing.T) {
	t.Parallel()
	if err := machine.Ordered(); err != nil {
		t.Skip("QEMU's threads have no order here:", err)
	}
	for range runtime.NumCPU() {
		loop := exec.Command("sh", "-c", "while :; do :; done")
		if err := loop.Start(); err != nil {
			t.Fatal(err)
		}
		defer loop.Wait()
		defer loop.Process.Kill()
	}
	c := newCell(t, "rest", func(c *Cell) { c.Tools = []string{"cyclictest"} })
	var outcomes [2]Outcome
	var machines sync.WaitGroup
	for i := range outcomes {
		machines.Go(func() {
			var err error
			if outcomes[i], err = c.Run(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	machines.Wait()
	if diff := cmp.Diff(outcomes[0], outcomes[1]); diff != "" {
		t.Errorf("the same seed gave two results:\n%s", diff)
	}
	if took := outcomes[0].Results.Metrics["cyclictest_s"]; took <= 0 {
		t.Errorf("cyclictest took %v s", took)
	}
}
