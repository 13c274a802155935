// Command tally counts tests. It reads the output of "go test -json", prints
// a line for each package and each slow test while they run, and the output of
// those that fail, and closes with "N passed, N failed, N skipped".
//
//	go test -json ./... | tally -o unit.json   keep the events, too
//	tally -sum unit.json vm.json               only the closing line
//
// It exits with 1 when a test failed, when a package did not compile, or when
// no test ran at all. It does not run anything itself: the Makefile and
// .ci/run do.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// slow is the time, in seconds, from which on a test has a line of its own.
const slow = 5

// event is one line of "go test -json".
type event struct {
	Action, Package, ImportPath, Test, Output string

	Elapsed float64 // seconds
}

// tally is what the events add up to.
type tally struct {
	progress io.Writer
	result   map[string]string   // package and test -> pass, fail or skip
	output   map[string][]string // what an unfinished test printed
}

func newTally(progress io.Writer) *tally {
	return &tally{progress: progress, result: map[string]string{}, output: map[string][]string{}}
}

// read adds the events of r. Lines that are no events (the Go command's own
// words) are passed on to the progress.
func (t *tally) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(t.progress, lines.Text())
			continue
		}
		t.add(e)
	}
	return lines.Err()
}

func (t *tally) add(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		t.output[key] = append(t.output[key], e.Output)
	case "build-output":
		fmt.Fprint(t.progress, e.Output)
	case "pass", "fail", "skip":
		t.end(e, key)
	}
}

func (t *tally) end(e event, key string) {
	if e.Action == "fail" {
		fmt.Fprint(t.progress, strings.Join(t.output[key], ""))
	}
	delete(t.output, key)
	if e.Test != "" && e.Elapsed >= slow {
		fmt.Fprintf(t.progress, "%-4s   %-30s %7.1f s\n", e.Action, e.Test, e.Elapsed)
	}
	if e.Test == "" {
		fmt.Fprintf(t.progress, "%-4s %-32s %7.1f s\n", e.Action, e.Package, e.Elapsed)
		if e.Action != "fail" || t.explained(e.Package) {
			return
		}
	}
	t.result[key] = e.Action
}

// explained says whether a test of the package failed, which is why the
// package did. Otherwise it did not compile, panicked or ran out of time.
func (t *tally) explained(pkg string) bool {
	for key, action := range t.result {
		if action == "fail" && strings.HasPrefix(key, pkg+" ") {
			return true
		}
	}
	return false
}

// count counts the tests without those that only group subtests.
func (t *tally) count() (passed, failed, skipped int) {
	groups := map[string]bool{}
	for key := range t.result {
		for i := strings.LastIndex(key, "/"); i > strings.Index(key, " "); i = strings.LastIndex(key[:i], "/") {
			groups[key[:i]] = true
		}
	}
	for key, action := range t.result {
		switch {
		case action == "fail" && (!groups[key] || !t.failedBelow(key)):
			failed++
		case groups[key]:
		case action == "pass":
			passed++
		case action == "skip":
			skipped++
		}
	}
	return passed, failed, skipped
}

func (t *tally) failedBelow(group string) bool {
	for key, action := range t.result {
		if action == "fail" && strings.HasPrefix(key, group+"/") {
			return true
		}
	}
	return false
}

// finish prints the closing line; its error says what is wrong with it.
func (t *tally) finish(w io.Writer) error {
	passed, failed, skipped := t.count()
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if failed > 0 {
		return errors.New("tests failed")
	}
	if passed == 0 {
		return errors.New("no test ran")
	}
	return nil
}

func run(keep string, sum []string, stdin io.Reader, stdout io.Writer) error {
	if len(sum) > 0 {
		t := newTally(io.Discard)
		for _, name := range sum {
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			if err := t.read(f); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return t.finish(stdout)
	}
	t := newTally(stdout)
	if keep != "" {
		f, err := os.Create(keep)
		if err != nil {
			return err
		}
		defer f.Close()
		stdin = io.TeeReader(stdin, f)
	}
	if err := t.read(stdin); err != nil {
		return err
	}
	return t.finish(stdout)
}

func main() {
	keep := flag.String("o", "", "keep the events in this `file`")
	sum := flag.Bool("sum", false, "add up the events in the files named as arguments")
	flag.Parse()
	var files []string
	if *sum {
		files = flag.Args()
		if len(files) == 0 {
			fmt.Fprintln(os.Stderr, "tally: no test ran")
			os.Exit(1)
		}
	}
	if err := run(*keep, files, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
}
