package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rota/lab/report"
	"rota/lab/scenario"
)

// prepareOutputs makes the directories of the results, and says before the first run, which may
// be hours before the last, which of them could not be written.
func (f runFlags) prepareOutputs(names []string) error {
	if f.json != "" && f.json != "-" {
		if err := checkFile(f.json); err != nil {
			return fmt.Errorf("--json %s: %w", f.json, err)
		}
	}
	if f.console != "" {
		if err := makeDir(f.console); err != nil {
			return fmt.Errorf("--console %s: %w", f.console, err)
		}
	}
	if f.report == "" {
		return nil
	}
	for _, name := range names {
		dir := f.reportDir(name, len(names) > 1)
		err := makeDir(dir)
		if err == nil {
			err = checkFile(filepath.Join(dir, resultsFile))
		}
		if err != nil {
			return fmt.Errorf("--report %s: %w", f.report, err)
		}
	}
	return nil
}

// resultsFile is what a report's results are written to, beside it.
const resultsFile = "results.json"

// reportDir is where the report of a scenario goes: that of one of several has its own.
func (f runFlags) reportDir(name string, several bool) string {
	if several {
		return filepath.Join(f.report, name)
	}
	return f.report
}

// makeDir makes a directory, or says why no file could be made in it.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return checkDir(dir)
}

// checkFile says why a file could not be written; what is in it stays.
func checkFile(path string) error {
	st, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return checkDir(filepath.Dir(path))
	case err != nil:
		return err
	case !st.Mode().IsRegular() && !st.IsDir():
		return nil // to open a pipe may take for ever
	}
	out, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return out.Close()
}

// checkDir says why no file could be made in a directory.
func checkDir(dir string) error {
	probe, err := os.CreateTemp(dir, ".rota-lab-*")
	if err != nil {
		return fmt.Errorf("no file can be made in %s: %w", dir, errors.Unwrap(err))
	}
	probe.Close()
	return os.Remove(probe.Name())
}

// keep writes what there is of a scenario, also when that did not come to its end, and passes on
// why it did not.
func (f runFlags) keep(c *cobra.Command, s scenario.Scenario, r report.Results, several bool, err error) error {
	if len(r.Runs) == 0 {
		return err
	}
	return errors.Join(f.write(c, s, r, several), err)
}

// write prints the table and writes what was asked for. What can't be written keeps nothing else
// from it, as the runs may have taken hours.
func (f runFlags) write(c *cobra.Command, s scenario.Scenario, r report.Results, several bool) error {
	info := s.Info(commandLine(f, s.Name))
	var failed []error
	if f.json == "-" {
		failed = append(failed, report.Write(c.OutOrStdout(), r))
	} else {
		failed = append(failed, report.Table(c.OutOrStdout(), r, info, report.Style{Color: isTerminal(c.OutOrStdout())}))
	}
	if f.json != "-" && f.json != "" {
		failed = append(failed, writeResults(f.json, r))
	}
	if f.report != "" {
		failed = append(failed, writeReport(f.reportDir(s.Name, several), r, info))
	}
	return errors.Join(failed...)
}

// writeReport writes a report, and beside it the results.
func writeReport(dir string, r report.Results, info report.Info) error {
	path, err := report.HTML(dir, r, info)
	if err == nil {
		say("report: %s", path)
	}
	return errors.Join(err, writeResults(filepath.Join(dir, resultsFile), r))
}

// commandLine repeats the run; the paths of outputs are left out.
func commandLine(f runFlags, name string) string {
	words := []string{"rota-lab", "run", name}
	add := func(flag string, values []string) {
		if len(values) > 0 {
			words = append(words, flag, quoted(strings.Join(values, ",")))
		}
	}
	add("--kernel", f.kernels)
	add("--sched", f.scheds)
	add("--row", f.rows)
	if f.turns != "" {
		words = append(words, "--turns", f.turns)
	}
	number := func(flag string, n int) {
		if n != 0 {
			words = append(words, flag, strconv.Itoa(n))
		}
	}
	m := f.machine
	number("--cpus", m.CPUs)
	number("--sockets", m.Sockets)
	number("--cores", m.Cores)
	number("--threads", m.Threads)
	number("--memory", m.MemoryMB)
	for _, parameter := range m.Append {
		words = append(words, "--append", quoted(parameter))
	}
	for _, model := range m.NICs {
		words = append(words, "--nic", quoted(model))
	}
	if m.Realtime {
		words = append(words, "--realtime")
	}
	if f.limit != 0 {
		words = append(words, "--limit", f.limit.String())
	}
	return strings.Join(append(words, "--seed", fmt.Sprint(f.seed), "--repeat", fmt.Sprint(f.repeat)), " ")
}

// plainWord is what a shell takes as it stands.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./,:=+@%-]+$`)

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
