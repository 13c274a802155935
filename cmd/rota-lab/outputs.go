package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rota/lab/report"
	"rota/lab/scenario"
)

// checkOutputs says before the first run, which may be hours before the last, which results
// could not be written.
func (f runFlags) checkOutputs() error {
	for flag, dir := range map[string]string{"--report": f.report, "--console": f.console} {
		if dir == "" {
			continue
		}
		err := os.MkdirAll(dir, 0o755)
		if err == nil {
			err = checkDir(dir)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", flag, dir, err)
		}
	}
	if f.json == "" || f.json == "-" {
		return nil
	}
	if err := checkFile(f.json); err != nil {
		return fmt.Errorf("--json %s: %w", f.json, err)
	}
	return nil
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
		return err
	}
	probe.Close()
	return os.Remove(probe.Name())
}

// write prints the table and writes what was asked for. A report of several
// scenarios has one directory for each.
func (f runFlags) write(c *cobra.Command, s scenario.Scenario, r report.Results, several bool) error {
	info := s.Info(commandLine(f, s.Name))
	if f.json == "-" {
		return report.Write(c.OutOrStdout(), r)
	}
	if f.json != "" {
		if err := writeResults(f.json, r); err != nil {
			return err
		}
	}
	if err := report.Table(c.OutOrStdout(), r, info, report.Style{Color: isTerminal(c.OutOrStdout())}); err != nil {
		return err
	}
	if f.report == "" {
		return nil
	}
	dir := f.report
	if several {
		dir = filepath.Join(dir, s.Name)
	}
	path, err := report.HTML(dir, r, info)
	if err != nil {
		return err
	}
	say("report: %s", path)
	return writeResults(filepath.Join(dir, "results.json"), r)
}

func writeResults(path string, r report.Results) error {
	out, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	if err := report.Write(out, r); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// commandLine repeats the run; the paths of outputs are left out.
func commandLine(f runFlags, name string) string {
	words := []string{"rota-lab", "run", name, "--kernel", strings.Join(f.kernels, ",")}
	add := func(flag string, values []string) {
		if len(values) > 0 {
			words = append(words, flag, strings.Join(values, ","))
		}
	}
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
		words = append(words, "--append", "'"+strings.ReplaceAll(parameter, "'", `'\''`)+"'")
	}
	for _, model := range m.NICs {
		words = append(words, "--nic", model)
	}
	if m.Realtime {
		words = append(words, "--realtime")
	}
	if f.limit != 0 {
		words = append(words, "--limit", f.limit.String())
	}
	return strings.Join(append(words, "--seed", fmt.Sprint(f.seed), "--repeat", fmt.Sprint(f.repeat)), " ")
}
