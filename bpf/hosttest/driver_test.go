// Package hosttest holds the arithmetic of bpf/eevdf.h, compiled for the host,
// against a model in exact fractions that is written from the definitions:
// V is the mean of all v, weighted; lag is V - v.
//
// It does not test the scheduler that calls that arithmetic: that needs a
// kernel. There is no code to import here.
package hosttest

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"testing"
)

// driver is a running program that executes eevdf.h; see testdata/driver.c.
type driver struct {
	in    io.Writer
	out   *bufio.Reader
	queue queue
}

// queue is struct eevdf_queue.
type queue struct {
	zero uint64
	sumV int64
	sumW uint64
}

// build compiles the driver and starts it. Overflow of signed numbers ends
// it, where the compiler can look for that.
func build(t testing.TB) *driver {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Fatalf("C compiler: %v; install it with: make setup", err)
	}
	program := filepath.Join(t.TempDir(), "driver")
	args := []string{"-O1", "-Wall", "-Werror", "-o", program, filepath.Join("testdata", "driver.c")}
	checked := append([]string{"-fsanitize=undefined", "-fno-sanitize-recover=all"}, args...)
	if err := exec.Command(cc, checked...).Run(); err != nil {
		if said, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
			t.Fatalf("compile driver: %v\n%s", err, said)
		}
	}
	return start(t, exec.Command(program))
}

func start(t testing.TB, cmd *exec.Cmd) *driver {
	t.Helper()
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("driver: %v", err)
		}
	})
	return &driver{in: in, out: bufio.NewReader(out)}
}

// do executes one command and remembers what the queue is then.
func (d *driver) do(t testing.TB, command string, args ...uint64) uint64 {
	t.Helper()
	var all [3]uint64
	copy(all[:], args)
	if _, err := fmt.Fprintln(d.in, command, all[0], all[1], all[2]); err != nil {
		t.Fatalf("%s %v: %v", command, args, err)
	}
	line, err := d.out.ReadString('\n')
	if err != nil {
		t.Fatalf("%s %v: %v (arithmetic overflow in eevdf.h?)", command, args, err)
	}
	var result uint64
	if _, err := fmt.Sscan(line, &result, &d.queue.zero, &d.queue.sumV, &d.queue.sumW); err != nil {
		t.Fatalf("%s %v: answer %q: %v", command, args, line, err)
	}
	return result
}
