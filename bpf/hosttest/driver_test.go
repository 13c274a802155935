// Package hosttest holds the arithmetic of bpf/eevdf.h, bpf/pace.h,
// bpf/pause.h, bpf/belief.h and bpf/counter.h, compiled for the host,
// against a model in exact fractions that is written from the definitions:
// V is the mean of all v, weighted; lag is V - v.
//
// It does not test the scheduler that calls that arithmetic: that needs a
// kernel. There is no code to import here.
package hosttest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// driver is the path of the program that executes eevdf.h; see
// testdata/driver.c.
type driver string

// command is one line of its input.
type command struct {
	name string
	a, b uint64
}

// answer is one line of its output: what the command returned, and struct
// eevdf_queue and its V after it.
type answer struct {
	result, zero uint64
	sumV         int64
	sumW, now    uint64
}

// build compiles the driver. Overflow of signed numbers ends it, where the
// compiler can look for that.
func build(t testing.TB) driver {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Fatalf("C compiler: %v; install it with: make setup", err)
	}
	source := filepath.Join("testdata", "driver.c")
	// The result of a test is kept until a file changes that the test itself
	// has read; that the compiler reads them does not count.
	for _, name := range []string{source, filepath.Join("..", "eevdf.h"), filepath.Join("..", "pace.h"), filepath.Join("..", "pause.h"), filepath.Join("..", "belief.h"), filepath.Join("..", "counter.h")} {
		if _, err := os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(t.TempDir(), "driver")
	args := []string{"-O1", "-Wall", "-Werror", "-o", program, source}
	checked := append([]string{"-fsanitize=undefined", "-fno-sanitize-recover=all"}, args...)
	if err := exec.Command(cc, checked...).Run(); err != nil {
		if said, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
			t.Fatalf("compile driver: %v\n%s", err, said)
		}
	}
	return driver(program)
}

// run executes commands, beginning with an empty queue. All at once: to wait
// for each answer would take long on a busy machine.
func (d driver) run(t testing.TB, commands []command) []answer {
	t.Helper()
	var in, out, said bytes.Buffer
	for _, c := range commands {
		fmt.Fprintln(&in, c.name, c.a, c.b)
	}
	cmd := exec.Command(string(d))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("driver: %v\n%s", err, said.Bytes())
	}
	answers := make([]answer, len(commands))
	for i := range answers {
		a := &answers[i]
		if _, err := fmt.Fscanln(&out, &a.result, &a.zero, &a.sumV, &a.sumW, &a.now); err != nil {
			t.Fatalf("answer to %v: %v", commands[i], err)
		}
	}
	return answers
}
