//go:build vm

package rota

import (
	"regexp"
	"strconv"
	"testing"
)

// knownAgain starts fifteen tasks that take the same name, under three sets of rules, and says
// after each how many classes came from the daemon and how many were known, and the last one's.
const knownAgain = `until rota status | grep -q "state *running"; do sleep 0.1; done
mkfifo /never
rules() {
	echo "classes: [{name: speech, tier: priority}, {name: song, tier: fair}]" > /etc/new
	echo "rules: [{match: {comm: voice$2}, class: $1}]" >> /etc/new
	cat /etc/new > /etc/rota.yaml
	rota reload > /dev/null
}
counts() { rota status --verbose | grep -A1 "by the daemon" | tail -1; }
voice() { sh -c "$1 printf voice > /proc/self/comm; read x < /never" & last=$!; }
fifteen() {
	# This one is called sh for so long that the daemon sees both of its names.
	voice 'sleep 0.5;'; sleep 1; counts > /dev/null; sleep 0.5
	echo "$1 before $(counts)"
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do voice; done
	sleep 1
	echo "$1 after $(counts)"
	echo "$1 class $(rota explain $last | tr '\n' ' ')"
}
rules speech; fifteen speech
rules song; fifteen song
rules speech ', cgroup: /singers, user: "0"'
mkdir /sys/fs/cgroup/singers; echo $$ > /sys/fs/cgroup/singers/cgroup.procs
fifteen cgroup
echo $$ > /sys/fs/cgroup/cgroup.procs
voice; sleep 1; echo "outside class $(rota explain $last | tr '\n' ' ')"
`

// TestKnown has tasks take a name that another one had before: their class must be known
// without the daemon, be that of the rules in force, and not hold outside of their cgroup.
func TestKnown(t *testing.T) {
	t.Parallel()
	config := configured(t, "classes: [{name: speech, tier: priority}]\nrules: [{match: {comm: voice}, class: speech}]\n")
	out := lab(t, "exec", coarse, "--sched", "rota", "--config", config, "--", knownAgain)
	counts := map[string][2]int{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+ (?:before|after)) +(\d+) +(\d+)$`).FindAllStringSubmatch(out, -1) {
		asked, _ := strconv.Atoi(m[2])
		known, _ := strconv.Atoi(m[3])
		counts[m[1]] = [2]int{asked, known}
	}
	classes := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+) class .*\bclass +(\w+)`).FindAllStringSubmatch(out, -1) {
		classes[m[1]] = m[2]
	}
	if classes["outside"] != "default" {
		t.Errorf("outside of the cgroup the class is %q", classes["outside"])
	}
	for rules, want := range map[string]string{"speech": "speech", "song": "song", "cgroup": "speech"} {
		before, after := counts[rules+" before"], counts[rules+" after"]
		asked, known := after[0]-before[0], after[1]-before[1]
		if classes[rules] != want {
			t.Errorf("rules for %s: the last task has class %q, want %q", rules, classes[rules], want)
		}
		// Each is called exe, too, for a moment: too short for the daemon to see that name, but
		// by chance. What else runs meanwhile may be new.
		if asked > 15+5 || known < 30 {
			t.Errorf("rules for %s: %d classes by the daemon, %d known", rules, asked, known)
		}
	}
}
