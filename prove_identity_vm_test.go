//go:build vm

package rota

import (
	"regexp"
	"testing"
)

// again: a task of a class ends, and another one gets its PID.
const again = `until rota status | grep -q "state *running"; do sleep 0.1; done
mkfifo /never
sh -c 'printf voice > /proc/self/comm; read x < /never' & first=$!
sleep 0.5
echo "first $first: $(rota explain $first | tr '\n' ' ')"
kill -9 $first; wait $first
for try in 1 2 3 4 5 6 7 8 9; do
	echo $((first - 1)) > /proc/sys/kernel/ns_last_pid
	sh -c 'read x < /never' & second=$!
	[ $second = $first ] && break
	kill -9 $second
done
sleep 0.5
echo "second $second: $(rota explain $second | tr '\n' ' ')"
`

// TestIdentity has the PID of a task that had a class used again. That a late answer about the
// one does not reach the other is shown in internal/daemon.
//
// Guarantee G6, identity: a class belongs to a live task or to a cgroup, never to a PID: who gets
// the PID of a task that has ended has nothing of its class
func TestIdentity(t *testing.T) {
	t.Parallel()
	config := configured(t, "classes: [{name: speech, tier: priority}]\nrules: [{match: {comm: voice}, class: speech}]\n")
	out := lab(t, "exec", coarse, "--sched", "rota", "--config", config, "--", again)
	said := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^(first|second) (\d+): .*\bclass +(\w+)`).FindAllStringSubmatch(out, -1) {
		said[m[1]] = m[2:]
	}
	first, second := said["first"], said["second"]
	if len(first) == 0 || len(second) == 0 || first[0] != second[0] {
		t.Fatalf("the PID was not used again: %v, %v", first, second)
	}
	if first[1] != "speech" || second[1] != "default" {
		t.Errorf("the first has class %s, who got its PID %s", first[1], second[1])
	}
}
