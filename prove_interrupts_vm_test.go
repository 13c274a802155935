//go:build vm

package rota

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// interruptsLoad joins two network cards by a wire, moves one's interrupts to CPU 2, then to
// CPU 1, and says each time which CPUs the classes have that follow them and keep away.
const interruptsLoad = `
/bin/ip netns add far
/bin/ip link set eth1 netns far
/bin/ip addr add 10.7.0.1/24 dev eth0; /bin/ip link set eth0 up
/bin/ip -n far addr add 10.7.0.2/24 dev eth1; /bin/ip -n far link set eth1 up
sleep 1; ping -i 0.05 10.7.0.2 > /dev/null & pinger=$!
serve() {
	for irq in $(grep eth0 /proc/interrupts | cut -d: -f1); do echo $1 > /proc/irq/$irq/smp_affinity_list; done
	sleep 4
	echo "report at$1 $(rota status --json | tr '\n' ' ')"
}
cat > /rota.yaml <<'END'
classes:
  - {name: near, tier: priority, cpus: {dedicated: 1, followInterrupts: eth0}}
  - {name: far, tier: priority, cpus: {dedicated: 1, avoidInterrupts: eth0}}
rules:
  - {match: {comm: nobody}, class: near}
END
rota run --config /rota.yaml & daemon=$!
for try in $(seq 100); do sleep 0.1; grep -q enabled /sys/kernel/sched_ext/state && break; done
serve 2
serve 1
echo "report where $(rota where e1000_intr_msix_rx --module e1000e --for 1s --json | tr '\n' ' ')"
kill $pinger $daemon; wait $daemon
`

// TestFollowInterrupts has a class follow the interrupts of a real driver's card, and finds
// the driver's handler in the interrupt that it is called from. The driver is not in the kernel
// that is asked for: the lab takes one of the same version that has it, and says so.
func TestFollowInterrupts(t *testing.T) {
	t.Parallel()
	out := strings.ReplaceAll(lab(t, "exec", coarse, "--kernel", "6.18", "--nic", "e1000e", "--nic", "e1000e", "--module", "e1000e",
		"--tool", "ip", "--tool", "ping", "--file", "bin/rota=/bin/rota", "--", interruptsLoad), "\r", "")
	if want := `kernel 6.18: has no module "e1000e"; 6.18-binder, the same version, took its place`; !strings.Contains(out, want) {
		t.Errorf("not said: %s", want)
	}
	found := map[string][]byte{}
	for _, m := range named.FindAllStringSubmatch(out, -1) {
		found[m[1]] = []byte(m[2])
	}
	for name, cpu := range map[string]int{"at2": 2, "at1": 1} {
		var status struct {
			Classes []struct {
				Name string
				CPUs []int
			}
		}
		if err := json.Unmarshal(found[name], &status); err != nil {
			t.Fatalf("%s: %v in %s", name, err, found[name])
		}
		owned := map[string][]int{}
		for _, c := range status.Classes {
			owned[c.Name] = c.CPUs
		}
		if !slices.Equal(owned["near"], []int{cpu}) || len(owned["far"]) != 1 || owned["far"][0] == cpu {
			t.Errorf("interrupts on CPU %d: near has %v, far %v", cpu, owned["near"], owned["far"])
		}
	}
	var where executed
	if err := json.Unmarshal(found["where"], &where); err != nil {
		t.Fatalf("%v in %s", err, found["where"])
	}
	at := slices.IndexFunc(where.Executors, func(e executedBy) bool { return e.Interrupt == "eth0-rx-0" })
	if at < 0 {
		t.Fatalf("who handles the interrupt: %+v", where)
	}
	e := where.Executors[at]
	if e.Context != "hardirq" || e.Number == nil || e.Count < 10 || len(e.CPUs) != 1 || e.CPUs[0].CPU != 1 {
		t.Errorf("who handles the interrupt: %+v", e)
	}
}
