package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rota/lab/kernels"
	"rota/lab/report"
	"rota/lab/scenario"
)

// place is a row on a kernel, as the command line or the row itself calls that.
type place struct {
	row    scenario.Row
	kernel string
}

// places lists kernels x rows in the order of the report.
func (f runFlags) places(rows []scenario.Row) []place {
	var list []place
	for round, want := range f.kernels {
		for _, row := range rows {
			if name := kernelFor(row, want, round); name != "" {
				list = append(list, place{row, name})
			}
		}
	}
	return list
}

// kernelFor names the kernel on which a row runs in a round over --kernel. A
// row with a kernel of its own runs in the first round only: "" is the others.
func kernelFor(row scenario.Row, want string, round int) string {
	switch {
	case row.Kernel == "":
		return want
	case round == 0:
		return row.Kernel
	}
	return ""
}

// rowsOf are the rows of a scenario that were asked for.
func (f runFlags) rowsOf(s scenario.Scenario) ([]scenario.Row, error) {
	rows, err := chooseRows(s.Rows, f.scheds, f.rows)
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	return rows, nil
}

// checkRuns refuses more runs than can be written, which would be known after the last of them.
func (f runFlags) checkRuns(s scenario.Scenario) error {
	rows, err := f.rowsOf(s)
	if err != nil {
		return err
	}
	cells := len(f.places(rows))
	if runs := cells * f.repeat; runs > report.MaxRuns {
		return fmt.Errorf("scenario %s: %s on %s with --repeat %d are %d runs: must be at most %d; take --repeat %d, or fewer rows or kernels",
			s.Name, counted(len(rows), "row"), counted(len(f.kernels), "kernel"), f.repeat, runs, report.MaxRuns, max(1, report.MaxRuns/cells))
	}
	return nil
}

// kernelNames says how results name the kernels that were asked for: by their releases, and
// where several have the same one also as they were asked for.
func kernelNames(asked []string, known map[string]kernels.Kernel) (map[string]string, error) {
	shown := map[string]string{}
	for want, k := range known {
		shown[want] = k.Release
	}
	for i, a := range asked {
		for _, b := range asked[:i] {
			first, second := known[b], known[a]
			if first.Release == "" || first.Release != second.Release {
				continue
			}
			if sameFile(first.Image, second.Image) {
				return nil, fmt.Errorf("--kernel %s and %s: both are kernel %s: name one of them", b, a, first.Name)
			}
			for _, want := range []string{a, b} {
				shown[want] = fmt.Sprintf("%s (%s)", first.Release, want)
			}
		}
	}
	return shown, nil
}

// sameFile tells whether two paths lead to one file.
func sameFile(a, b string) bool {
	first, errA := os.Stat(a)
	second, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(first, second)
}

// onlyOnce refuses what a flag names twice: its runs would pass for further seeds of one row.
func onlyOnce(flag string, values []string) error {
	seen := map[string]bool{}
	for _, value := range values {
		words := strings.Fields(value)
		if len(words) > 0 && strings.Contains(words[0], "/") {
			if path, err := filepath.Abs(words[0]); err == nil {
				words[0] = path
			}
		}
		same := strings.Join(words, " ")
		if seen[same] {
			return fmt.Errorf("%s %q: named twice; name it once, --repeat runs it with several seeds", flag, value)
		}
		seen[same] = true
	}
	return nil
}

// chooseRows picks rows by scheduler and by name; a scheduler that is a path
// is a row of its own.
func chooseRows(all []scenario.Row, scheds, names []string) ([]scenario.Row, error) {
	rows, err := all, error(nil)
	if len(scheds) > 0 {
		if rows, err = rowsByScheduler(all, scheds); err != nil {
			return nil, err
		}
	}
	if len(names) > 0 {
		if rows, err = rowsByName(rows, names); err != nil {
			return nil, err
		}
	}
	if len(rows) == 0 {
		return nil, errors.New("no row is left to run")
	}
	return rows, nil
}

func rowsByScheduler(all []scenario.Row, scheds []string) ([]scenario.Row, error) {
	if err := onlyOnce("--sched", scheds); err != nil {
		return nil, err
	}
	var rows []scenario.Row
	for _, want := range scheds {
		switch {
		case want == "kernel" || want == "rota":
			rows = append(rows, rowsWhere(all, func(r scenario.Row) bool { return r.Scheduler == want })...)
		case strings.Contains(want, "/") || slices.Contains(peerNames(), first(want)):
			rows = append(rows, scenario.Row{Scheduler: want})
		default:
			return nil, fmt.Errorf("--sched %q: must be %s", want, schedulerWords())
		}
	}
	return rows, nameRows(rows, all)
}

func rowsByName(rows []scenario.Row, names []string) ([]scenario.Row, error) {
	if err := onlyOnce("--row", names); err != nil {
		return nil, err
	}
	var chosen []scenario.Row
	for _, name := range names {
		found := rowsWhere(rows, func(r scenario.Row) bool { return r.Name == name })
		if len(found) == 0 {
			return nil, fmt.Errorf("--row %q: must be one of %s", name, rowNamesOf(rows))
		}
		chosen = append(chosen, found...)
	}
	return chosen, nil
}

// nameRows names the rows that have no name yet after their programs. Those of one name, also of
// the scenario's own rows, get as much of their command lines as it takes to tell them apart.
func nameRows(rows, all []scenario.Row) error {
	for i := range rows {
		if rows[i].Name != "" {
			continue
		}
		alike := []*scenario.Row{&rows[i]}
		for j := i + 1; j < len(rows); j++ {
			if rows[j].Name == "" && programName(rows[j].Scheduler) == programName(rows[i].Scheduler) {
				alike = append(alike, &rows[j])
			}
		}
		if !nameAlike(alike, all) {
			return fmt.Errorf("--sched %.60q: as the name of a row it is too long, at most %d bytes: give the program a shorter path, as by a link, or fewer options",
				rows[i].Scheduler, report.MaxRowName)
		}
	}
	return nil
}

// nameAlike names rows whose programs have the same name; false where no way to do it fits.
func nameAlike(rows []*scenario.Row, all []scenario.Row) bool {
	for _, name := range []func(string) string{programName, programAndOptions, folderProgramAndOptions, wholeCommand} {
		taken := map[string]bool{}
		for _, row := range all {
			taken[row.Name] = true
		}
		fits := true
		for _, row := range rows {
			row.Name = name(row.Scheduler)
			fits = fits && !taken[row.Name] && len(row.Name) <= report.MaxRowName
			taken[row.Name] = true
		}
		if fits {
			return true
		}
	}
	return false
}

// programName is the name of the program that a command line starts.
func programName(command string) string { return filepath.Base(strings.Fields(command)[0]) }

func programAndOptions(command string) string {
	words := strings.Fields(command)
	words[0] = filepath.Base(words[0])
	return strings.Join(words, " ")
}

func folderProgramAndOptions(command string) string {
	path := strings.Fields(command)[0]
	if !strings.Contains(path, "/") { // a peer
		return programAndOptions(command)
	}
	folder := filepath.Base(filepath.Dir(path))
	return strings.TrimPrefix(folder+"/", "/") + programAndOptions(command)
}

func wholeCommand(command string) string { return strings.Join(strings.Fields(command), " ") }

// first is the first word of a command line.
func first(command string) string { word, _, _ := strings.Cut(command, " "); return word }

func rowsWhere(rows []scenario.Row, fits func(scenario.Row) bool) []scenario.Row {
	var found []scenario.Row
	for _, r := range rows {
		if fits(r) {
			found = append(found, r)
		}
	}
	return found
}

func rowNamesOf(rows []scenario.Row) string {
	var names []string
	for _, r := range rows {
		names = append(names, r.Name)
	}
	return strings.Join(names, ", ")
}
