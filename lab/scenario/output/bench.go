package output

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Hackbench reads the seconds that hackbench took.
func Hackbench(text string) (float64, error) {
	rest, ok := after(text, "Time:")
	if !ok {
		return 0, fmt.Errorf("hackbench: no time in its output: %q", clip(text))
	}
	return number("hackbench", "time", rest)
}

// PerfPipe reads the us per operation of "perf bench sched pipe".
func PerfPipe(text string) (float64, error) {
	head, _, ok := strings.Cut(text, " usecs/op")
	if !ok {
		return 0, fmt.Errorf("perf bench sched pipe: no usecs/op in its output: %q", clip(text))
	}
	return number("perf bench sched pipe", "usecs/op", head[strings.LastIndexByte(head, '\n')+1:])
}

// PerfMessaging reads the seconds of "perf bench sched messaging".
func PerfMessaging(text string) (float64, error) {
	rest, ok := after(text, "Total time:")
	if !ok {
		return 0, fmt.Errorf("perf bench sched messaging: no total time in its output: %q", clip(text))
	}
	return number("perf bench sched messaging", "total time", firstWord(rest))
}

// StressNG reads the bogo operations of one stressor from the table that
// "stress-ng --metrics-brief" prints.
func StressNG(text, stressor string) (float64, error) {
	for _, line := range strings.Split(text, "\n") {
		_, row, ok := strings.Cut(line, "metrc: [")
		if !ok {
			continue
		}
		if words := strings.Fields(row); len(words) >= 3 && words[1] == stressor {
			return number("stress-ng", "bogo ops of "+stressor, words[2])
		}
	}
	return 0, fmt.Errorf("stress-ng: no metrics of %q in its output: %q", stressor, clip(text))
}

// BenchSwitch reads the ns of a switch that "rota bench switch --json" prints.
func BenchSwitch(text string) (float64, error) {
	var report struct{ SwitchNanos struct{ Median float64 } }
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		return 0, fmt.Errorf("rota bench switch: %w in %q", err, clip(text))
	}
	if report.SwitchNanos.Median <= 0 {
		return 0, fmt.Errorf("rota bench switch: no switchNanos in %q", clip(text))
	}
	return report.SwitchNanos.Median, nil
}

// Pairs reads the line "name number name number ..." that our own loads print.
func Pairs(text string) (map[string]float64, error) {
	words := strings.Fields(text)
	if len(words) == 0 || len(words)%2 != 0 {
		return nil, fmt.Errorf("load: %q: must be pairs of a name and a number", clip(text))
	}
	pairs := map[string]float64{}
	for i := 0; i < len(words); i += 2 {
		value, err := number("load", words[i], words[i+1])
		if err != nil {
			return nil, err
		}
		pairs[words[i]] = value
	}
	return pairs, nil
}

// Figure reads one of these, which must be more than 0.
func Figure(text, name string) (float64, error) {
	pairs, err := Pairs(text)
	if err != nil {
		return 0, err
	}
	if pairs[name] <= 0 {
		return 0, fmt.Errorf("load: no %s in %q", name, clip(text))
	}
	return pairs[name], nil
}

// CPUTimes are jiffies of all CPUs together since boot.
type CPUTimes struct{ Idle, Total float64 }

// ProcStat reads the first line of /proc/stat.
func ProcStat(text string) (CPUTimes, error) {
	rest, ok := strings.CutPrefix(text, "cpu ")
	if !ok {
		return CPUTimes{}, fmt.Errorf("/proc/stat: begins with %q: must be cpu", clip(text))
	}
	line, _, _ := strings.Cut(rest, "\n")
	words := strings.Fields(line)
	if len(words) < 8 {
		return CPUTimes{}, fmt.Errorf("/proc/stat: %d columns: must be at least 8", len(words))
	}
	var t CPUTimes
	// Columns from the ninth on (guest) are contained in the others.
	for i, word := range words[:8] {
		v, err := number("/proc/stat", "a column", word)
		if err != nil {
			return CPUTimes{}, err
		}
		t.Total += v
		if i == 3 || i == 4 { // idle, iowait
			t.Idle += v
		}
	}
	return t, nil
}

// IdlePct is the share of idle time between two readings, in percent.
func IdlePct(before, after CPUTimes) (float64, error) {
	total := after.Total - before.Total
	idle := after.Idle - before.Idle
	if total <= 0 || idle < 0 || idle > total {
		return 0, fmt.Errorf("/proc/stat: %v then %v: time must pass between two readings", before, after)
	}
	return 100 * idle / total, nil
}
