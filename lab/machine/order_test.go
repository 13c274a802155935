package machine

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Each machine has a CPU for itself as long as there are some, then they share evenly, and each
// gives back what it had.
func TestEachMachineHasItsCPU(t *testing.T) {
	allowed, err := allowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	names := fmt.Sprintf("@rota-test-%d/%%d/%%d", os.Getpid()) // no machine has these
	take := func() hostCPU {
		t.Helper()
		c, err := takeCPU(names)
		if err != nil {
			t.Fatal(err)
		}
		if !allowed.IsSet(c.number) || c.taken == nil {
			t.Errorf("CPU %d is not ours to use, or not taken", c.number)
		}
		return c
	}
	had := map[int]int{}
	var last hostCPU
	for range 2 * allowed.Count() {
		last = take()
		defer last.release()
		had[last.number]++
	}
	for cpu, machines := range had {
		if machines != 2 {
			t.Errorf("CPU %d has %d machines, must be 2", cpu, machines)
		}
	}
	last.release()
	again := take()
	defer again.release()
	if again.number != last.number {
		t.Errorf("CPU %d was not given back", last.number)
	}
}

// A counting machine's program has one CPU, and its first thread goes before what is fair; what it
// starts does not. Where that is not allowed, and on the host's clock, a machine is left alone.
func TestMainLoopGoesFirst(t *testing.T) {
	ordered := Ordered() == nil
	for _, realtime := range []bool{false, true} {
		policy, inOrder := unix.SCHED_NORMAL, ordered && !realtime
		if inOrder {
			policy = unix.SCHED_FIFO
		}
		m := script(t, fmt.Sprintf(`
policy() { cut -d' ' -f41 /proc/$1/stat; }
for i in 1 2 3 4 5 6 7 8 9 10; do [ "$(policy $$)" = %d ] && break; sleep 0.5; done
sleep 0.1 & child=$!
cpus=$(sed -n 's/Cpus_allowed_list:[^0-9]*//p' /proc/$$/status)
echo "$(policy $$) $(policy $child) $cpus" >"$results"`, policy))
		m.Realtime = realtime
		out, err := m.Run(context.Background())
		words := strings.Fields(string(out.Results))
		if err != nil || len(words) != 3 {
			t.Fatalf("%q, %v", out.Results, err)
		}
		if words[0] != strconv.Itoa(policy) || words[1] != "0" {
			t.Errorf("realtime %v: policy %s, of its child %s; want %d and 0", realtime, words[0], words[1], policy)
		}
		if _, one := strconv.Atoi(words[2]); inOrder && one != nil {
			t.Errorf("it has CPUs %s, not one", words[2])
		}
		if all := ownCPUs(t); !inOrder && words[2] != all {
			t.Errorf("realtime %v: it has CPUs %s, not %s", realtime, words[2], all)
		}
	}
}

func ownCPUs(t *testing.T) string {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(status), "Cpus_allowed_list:")
	list, _, _ = strings.Cut(list, "\n")
	return strings.TrimSpace(list)
}
