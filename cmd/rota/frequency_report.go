package main

import (
	"fmt"
	"io"

	"rota/bench/binder/latency"
	"rota/bench/fairness"
)

// frequencyReport is the answer.
type frequencyReport struct {
	Context latency.Context `json:"context"`
	fairness.Result
}

// maxShown is how many characters of a command the table shows.
const maxShown = 60

func (r frequencyReport) write(w io.Writer) error {
	r.writeHead(w)
	top := r.Steps[0]
	rows := [][]string{{"", "command", fmt.Sprintf("per s at %d MHz", top.KHz/1000)}}
	for i, command := range r.Commands {
		shown := []rune(safe(command))
		if len(shown) > maxShown {
			shown = append(shown[:maxShown-3], []rune("...")...)
		}
		rows = append(rows, []string{letter(i), string(shown), fmt.Sprintf("%.4g", top.PerSecond[i])})
	}
	if err := writeColumns(w, 2, rows); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := writeColumns(w, 0, r.table()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nkept of the progress at %d MHz; Fair_Degree: 0 where all keep as much\nlast row: the highest frequency again; differences as there say nothing\n", top.KHz/1000)
	return err
}

// writeHead says what was measured where.
func (r frequencyReport) writeHead(w io.Writer) {
	shared := ""
	if len(r.Siblings) > 0 {
		shared = ", shared with CPU " + cpuList(r.Siblings)
	}
	if len(r.Siblings) > 1 {
		shared = ", shared with CPUs " + cpuList(r.Siblings)
	}
	copies := "1 copy"
	if r.Copies != 1 {
		copies = fmt.Sprintf("%d copies", r.Copies)
	}
	fmt.Fprintf(w, "CPU %d (%s%s), %s of each command, %s at each frequency, progress: %s, kernel %s, scheduler %s\n\n",
		r.CPU, safe(r.Policy), shared, copies, seconds(r.Seconds), safe(r.Progress), r.Context.Kernel, r.Context.Scheduler)
}

// table has a row for each frequency below the highest one, and one for that again.
func (r frequencyReport) table() [][]string {
	compared := false
	for _, s := range r.Steps {
		compared = compared || s.Before != nil
	}
	head := []string{"MHz", "runs at"}
	for i := range r.Commands {
		head = append(head, letter(i)+" kept")
	}
	head = append(head, "mean kept", "Fair_Degree", "sample")
	if compared {
		head = append(head, "before", "improvement")
	}
	rows := [][]string{head}
	for _, s := range append(r.Steps[1:len(r.Steps):len(r.Steps)], r.Again) {
		row := []string{inMegahertz(s.KHz), inMegahertz(s.RunsAtKHz)}
		for _, kept := range append(s.Kept[:len(s.Kept):len(s.Kept)], s.MeanKept) {
			row = append(row, fmt.Sprintf("%.1f%%", 100*kept))
		}
		row = append(row, degree(&s.Degree), degree(&s.SampleDegree))
		if compared {
			improvement := "-"
			if s.Improvement != nil {
				improvement = fmt.Sprintf("%.1f%%", *s.Improvement)
			}
			row = append(row, degree(s.Before), improvement)
		}
		rows = append(rows, row)
	}
	return rows
}

// letter stands for a command in the heads of columns.
func letter(i int) string { return string(rune('A' + i)) }

func inMegahertz(khz int) string { return fmt.Sprintf("%.0f", float64(khz)/1000) }

func degree(d *float64) string {
	if d == nil {
		return "-"
	}
	return fmt.Sprintf("%.4f", *d)
}
