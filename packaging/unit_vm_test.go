//go:build vm

package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var bounding = regexp.MustCompile(`(?m)^CapabilityBoundingSet=(.*)$`)

// TestUnitGivesEnough starts rota in a virtual machine with the capabilities of
// the unit and no others: it must attach, see what another user's task executes,
// answer, reload and leave.
func TestUnitGivesEnough(t *testing.T) {
	m := bounding.FindStringSubmatch(read(t, "systemd/rota.service"))
	if m == nil {
		t.Fatal("rota.service: no CapabilityBoundingSet")
	}
	caps := "-all"
	for _, name := range strings.Fields(m[1]) {
		caps += ",+" + strings.ToLower(strings.TrimPrefix(name, "CAP_"))
	}
	out := boot(t, `
mkdir -p /etc/rota /run/rota /tmp/other && cp /bin/busybox /tmp/other/sleep
echo "rota:x:77:" > /etc/group
cat > /etc/rota/rota.yaml <<END
classes: [{name: other}]
rules: [{match: {exe: /tmp/other}, class: other}]
END
/bin/setpriv --reuid 65534 --clear-groups /tmp/other/sleep 100 &
# With its path: the shell has a smaller setpriv of its own.
/bin/setpriv --bounding-set=`+caps+` --no-new-privs /bin/rota run & daemon=$!
for try in 1 2 3 4 5 6 7 8 9 10; do
	sleep 1
	grep -q enabled /sys/kernel/sched_ext/state && break
done
echo "state: $(cat /sys/kernel/sched_ext/state)"
/bin/rota status | grep ^state
/bin/rota reload
/bin/rota class list
echo "group: $(stat -c %g /run/rota/rota.sock)"
kill $daemon; wait $daemon
echo "exit code: $?"
echo "state: $(cat /sys/kernel/sched_ext/state)"
`)
	for _, want := range []string{
		`state: enabled`, `in force`, `other +fair .* 1\b`, `group: 77`, `exit code: 0`, `state: disabled`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %q", want)
		}
	}
	t.Log(out)
}

// boot runs a shell script in a guest of the lab and returns its output.
func boot(t *testing.T, script string) string {
	t.Helper()
	bin, err := filepath.Abs("../bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(bin + "/rota-lab"); err != nil {
		t.Fatalf("%v: run make build", err)
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin+"/rota-lab", "exec", "--turns=none", "--tool", setpriv,
		"--file", bin+"/rota=/bin/rota", "--", script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}
