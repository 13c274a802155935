package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rota/lab/arch"
)

func TestArguments(t *testing.T) {
	m := Machine{Kernel: "/k", Initramfs: "/i", CPUs: 8, Sockets: 2, Threads: 2, Append: []string{"isolcpus=1"}, NICs: []string{"e1000e", "igb"}}.withDefaults()
	line := strings.Join(m.arguments("file,id=console,path=c", "file,id=results,path=r"), " ")
	for _, want := range []string{
		"-accel tcg,thread=single -icount shift=0,sleep=off -rtc base=2026-01-01,clock=vm -cpu max,-rdrand,-rdseed,-erms,-fsrm,-fsrs,-fsrc,-fzrm",
		"-smp cpus=8,sockets=2,cores=2,threads=2", "-m 1024", "-no-reboot", "-nic none", "-kernel /k -initrd /i",
		"nokaslr random.trust_cpu=off panic=-1 oops=panic noautogroup", "iomem=relaxed", "isolcpus=1",
		"-chardev file,id=console,path=c -serial chardev:console -chardev file,id=results,path=r -serial chardev:results",
		"-netdev hubport,id=port0,hubid=0 -device e1000e,netdev=port0 -netdev hubport,id=port1,hubid=0 -device igb,netdev=port1",
	} {
		if !strings.Contains(line, want) {
			t.Errorf("lacks %q:\n%s", want, line)
		}
	}
	m.RealIdle, m.EventTimers = true, 7
	if line := strings.Join(m.arguments("c", "r"), " "); !strings.Contains(line, " -global hpet.timers=7 ") {
		t.Errorf("event timers: %s", line)
	}
	if line := strings.Join(Machine{Arch: arch.ARM64(), EventTimers: 7}.arguments("c", "r"), " "); strings.Contains(line, "-global") {
		t.Errorf("a board without an HPET: %s", line)
	}
	if line := strings.Join(m.clock(), " "); !strings.Contains(line, "sleep=on") {
		t.Errorf("real idle: %s", line)
	}
}

// Figures depend on every word of amd64's line.
func TestArgumentsOfAnArchitecture(t *testing.T) {
	const head = "-nodefaults -no-user-config -no-reboot -display none -nic none -machine "
	const shape = " -smp cpus=4,sockets=1,cores=4,threads=1 -m 1024 -kernel /k -initrd /i -append "
	const quiet = " quiet nokaslr random.trust_cpu=off panic=-1 oops=panic noautogroup cryptomgr.notests=1 damon_stat.enabled=N"
	const clock = " -accel tcg,thread=single -icount shift=0,sleep=off -rtc base=2026-01-01,clock=vm -cpu "
	for a, want := range map[arch.Arch]string{
		{}: head + "pc" + shape + "console=ttyS0" + quiet + " cpu_init_udelay=0 iomem=relaxed" +
			" -chardev c -serial chardev:console -chardev r -serial chardev:results" + clock + "max,-rdrand,-rdseed,-erms,-fsrm,-fsrs,-fsrc,-fzrm",
		arch.ARM64(): head + "virt,gic-version=3,dtb-randomness=off" + shape + "console=ttyAMA0" + quiet +
			" -chardev c -serial chardev:console -chardev r -device pci-serial,chardev=results" + clock + "neoverse-n1",
	} {
		m := Machine{Arch: a, Kernel: "/k", Initramfs: "/i"}.withDefaults()
		if got := strings.Join(m.arguments("c", "r"), " "); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", m.Arch.Name, got, want)
		}
	}
}

func TestKernelParametersAreNotShared(t *testing.T) {
	a := Machine{Append: []string{"first=1"}}.arguments("", "")
	b := Machine{Append: []string{"second=2"}}.arguments("", "")
	if strings.Contains(strings.Join(a, " "), "second=2") || strings.Contains(strings.Join(b, " "), "first=1") {
		t.Error("one machine's parameters are in another's")
	}
}

// Sizes are checked before anything else of a machine is known.
func TestCheckOfSizes(t *testing.T) {
	if err := (Machine{}).Check(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	if err := (Machine{MemoryMB: 1}).Check(); err == nil || !strings.Contains(err.Error(), "1 MB of memory: must be 128") {
		t.Errorf("1 MB: %v", err)
	}
}

func TestCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		m    Machine
		want string
	}{
		"fit":           {Machine{}, ""},
		"many CPUs":     {Machine{CPUs: 256}, "must be 1..255"},
		"negative CPUs": {Machine{CPUs: -1}, "must be 1..255"},
		"topology":      {Machine{CPUs: 4, Threads: 3}, "must be 4 CPUs"},
		"no sockets":    {Machine{Sockets: -1}, "-1 sockets: must be 1..255"},
		"product is 0":  {Machine{Sockets: 1 << 32, Threads: 1 << 32}, "4294967296 sockets: must be 1..255"},
		"product is 4":  {Machine{CPUs: 4, Cores: 1<<62 + 1, Threads: 4}, "4611686018427387905 cores per socket: must be 1..255"},
		"many threads":  {Machine{Threads: 256}, "256 threads per core: must be 1..255"},
		"memory":        {Machine{MemoryMB: 64}, "must be 128"},
		"card":          {Machine{NICs: []string{"e1000e,mac=1"}}, `network card "e1000e,mac=1": is no model`},
		"no kernel":     {Machine{Kernel: file + ".missing"}, "no such file"},
		"no initramfs":  {Machine{Initramfs: file + ".missing"}, "no such file"},
	} {
		if c.m.Kernel == "" {
			c.m.Kernel = file
		}
		if c.m.Initramfs == "" {
			c.m.Initramfs = file
		}
		err := c.m.withDefaults().check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestCheckVersion(t *testing.T) {
	for text, fit := range map[string]bool{
		"QEMU emulator version 10.0.2 (Debian 1:10.0.2)": true,
		"QEMU emulator version 8.1.0":                    true,
		"QEMU emulator version 8.0.4":                    false,
		"QEMU emulator version 7.2.17":                   false,
		"no idea":                                        false,
	} {
		if err := (Machine{}).checkVersion("qemu", text); (err == nil) != fit {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// script makes a stand-in for QEMU. It answers --version; otherwise it runs
// body with the paths of the two ports in $console and $results.
func script(t *testing.T, body string) Machine {
	t.Helper()
	dir := t.TempDir()
	text := `#!/bin/sh
[ "$1" = --version ] && { echo "QEMU emulator version 10.0.2"; exit; }
for a; do case "$a" in
file,id=console,path=*) console="${a#file,id=console,path=}";;
file,id=results,path=*) results="${a#file,id=results,path=}";;
esac; done
` + body
	m := Machine{QEMU: filepath.Join(dir, "qemu"), Kernel: filepath.Join(dir, "k"), Initramfs: filepath.Join(dir, "i")}
	for path, contents := range map[string]string{m.QEMU: text, m.Kernel: "", m.Initramfs: ""} {
		if err := os.WriteFile(path, []byte(contents), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func TestRun(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"works":      {`echo fine >"$console"; echo r >"$results"`, ""},
		"panics":     {`echo "[1.0] Kernel panic - not syncing: test" >"$console"`, "kernel: [1.0] Kernel panic - not syncing: test"},
		"oopses":     {`printf 'BUG: kernel NULL pointer\r\nmore\r\n' >"$console"`, "BUG: kernel NULL pointer; the guest said last:\nBUG: kernel NULL pointer\nmore"},
		"qemu fails": {`echo "no such machine" >&2; exit 1`, "qemu: exit status 1: no such machine; the guest said last:\n(nothing)"},
		"floods":     {`exec dd if=/dev/zero of="$console" bs=1M count=70 2>/dev/null`, "qemu: signal: file size limit exceeded"},
		"hangs":      {`echo booting >"$console"; exec sleep 100`, "host time limit of 300ms; the guest said last:\nbooting"},
	} {
		t.Run(name, func(t *testing.T) {
			m := script(t, c.body)
			if name == "hangs" {
				m.HostLimit = 300 * time.Millisecond
			}
			var seen bytes.Buffer
			m.Watch = &seen
			out, err := m.Run(context.Background())
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if name == "works" && (out.Console != "fine\n" || string(out.Results) != "r\n" || seen.String() != "fine\n") {
				t.Errorf("%q, %q, watched %q", out.Console, out.Results, seen.String())
			}
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	m := script(t, "exec sleep 100")
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := m.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if time.Since(start) > 30*time.Second {
		t.Error("it outlived its context")
	}
}

func TestMissingQEMUIsNamed(t *testing.T) {
	for _, a := range []arch.Arch{arch.AMD64(), arch.ARM64()} {
		m := script(t, "")
		m.QEMU, m.Arch = "no-such-qemu", a
		if _, err := m.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "package "+a.Package+" ") {
			t.Errorf("%s: %v", a.Name, err)
		}
	}
}

func TestRunLeavesNothing(t *testing.T) {
	m := script(t, `echo x >"$console"`)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	if _, err := m.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestBoundsOnWhatIsReadBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	head, _ := readHead(path, 4)
	tail, _ := readTail(path, 4)
	if string(head) != "0123" || tail != "6789" {
		t.Errorf("%q, %q", head, tail)
	}
}

func TestLastWords(t *testing.T) {
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, "line %d\r\n", i)
	}
	words := LastWords(b.String() + "\x1b[2J")
	if !strings.HasPrefix(words, "line 76\n") || !strings.HasSuffix(words, "line 99\n?[2J") {
		t.Errorf("%q", words)
	}
}

func TestEscape(t *testing.T) {
	if got := escape("/a,b"); got != "/a,,b" {
		t.Error(got)
	}
}
