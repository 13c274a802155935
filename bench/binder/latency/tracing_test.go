package latency

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// event is a line of the kernel's text trace as Perfetto's importer of it reads one:
// thread, process (empty: not recorded), CPU, flags of three letters and one or two
// digits, time, name, and words.
var event = regexp.MustCompile(`^ *(\S.*)-(\d+) +(?:\( *(\d+|-+)\) +)?\[(\d+)\] +(?:[a-zA-Z.]{3}[0-9a-f.]{1,2} +)?(\d+\.\d+): (\w+): (.*)$`)

// numbers are the words that the importer needs of an event, and all that are numbers.
var numbers = map[string][]string{
	"sched_switch":                {"prev_pid", "prev_prio", "next_pid", "next_prio"},
	"sched_waking":                {"pid"},
	"binder_transaction":          {"transaction", "dest_node", "dest_proc", "dest_thread", "reply"},
	"binder_transaction_received": {"transaction"},
}

// traceReader reads a trace and counts what it holds.
type traceReader struct {
	*testing.T
	seen   map[string]int
	open   map[string]int  // marks of a thread that have not ended
	called map[string]bool // transactions
}

// TestTraceIsPerfettos reads traces that -trace left in virtual machines, by the rules of
// Perfetto's importer.
func TestTraceIsPerfettos(t *testing.T) {
	for _, name := range []string{"trace-6.18.txt", "trace-7.2.txt"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("testdata/" + name)
			if err != nil {
				t.Fatal(err)
			}
			r := traceReader{t, map[string]int{}, map[string]int{}, map[string]bool{}}
			lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
			if !strings.HasPrefix(lines[0], "# tracer") {
				t.Errorf("it begins with %q, by which no importer knows it", lines[0])
			}
			for _, line := range lines {
				if !strings.HasPrefix(line, "#") {
					r.read(line)
				}
			}
			for _, want := range []string{"sched_switch", "sched_waking", "binder_transaction", "binder_transaction_received", "B", "E"} {
				if r.seen[want] == 0 {
					t.Errorf("no %s in it", want)
				}
			}
			for thread, n := range r.open {
				if n != 0 {
					t.Errorf("thread %s: %d marks do not end", thread, n)
				}
			}
		})
	}
}

func (r traceReader) read(line string) {
	r.Helper()
	e := event.FindStringSubmatch(line)
	if e == nil {
		r.Errorf("no event: %q", line)
		return
	}
	thread, process, name, words := e[2], e[3], e[6], e[7]
	r.seen[name]++
	if name == "tracing_mark_write" {
		r.mark(thread, process, words)
		return
	}
	fields := map[string]string{}
	for _, word := range strings.Fields(words) {
		if key, value, found := strings.Cut(word, "="); found {
			fields[key] = value
		}
	}
	for _, key := range numbers[name] {
		if _, err := strconv.ParseInt(fields[key], 10, 32); err != nil {
			r.Errorf("%s is %q in %q", key, fields[key], line)
		}
	}
	if id := fields["transaction"]; name == "binder_transaction" {
		r.called[id] = true
	} else if id != "" && !r.called[id] {
		r.Errorf("transaction %s was received before it was made", id)
	}
}

// mark reads B|process|name or E|process, which begin and end a slice of the thread.
func (r traceReader) mark(thread, process, words string) {
	r.Helper()
	fields := strings.Split(words, "|")
	r.seen[fields[0]]++
	switch {
	case fields[0] == "B" && len(fields) == 3 && fields[2] != "":
		r.open[thread]++
	case fields[0] == "E" && len(fields) == 2:
		r.open[thread]--
	default:
		r.Errorf("no mark: %q", words)
		return
	}
	if fields[1] != process {
		r.Errorf("a mark of process %q by process %q: %q", fields[1], process, words)
	}
}

// TestMarks: what marks a call today is what the recorded traces hold.
func TestMarks(t *testing.T) {
	marker, err := os.Create(t.TempDir() + "/marker")
	if err != nil {
		t.Fatal(err)
	}
	defer marker.Close()
	m := &tracing{marker: marker}
	r := traceReader{t, map[string]int{}, map[string]int{}, nil}
	for _, write := range []func(){func() { m.begin("other-caller") }, m.end} {
		before, _ := os.ReadFile(marker.Name())
		write()
		after, _ := os.ReadFile(marker.Name())
		r.mark("1", strconv.Itoa(os.Getpid()), strings.TrimPrefix(string(after), string(before)))
	}
	if r.seen["B"] != 1 || r.seen["E"] != 1 || r.open["1"] != 0 {
		t.Errorf("%v, open %v", r.seen, r.open)
	}
}

// TestStopsAtAMiss: a call that takes just as long as the deadline does not miss it.
func TestStopsAtAMiss(t *testing.T) {
	for ns, stops := range map[int64]bool{2_500_000: false, 2_500_001: true} {
		on, err := os.Create(t.TempDir() + "/tracing_on")
		if err != nil {
			t.Fatal(err)
		}
		defer on.Close()
		c := &client{order: order{DeadlineNs: 2_500_000}, tracing: &tracing{on: on}}
		got := c.stopAt(&Series{Spans: []int64{9e9, ns}})
		written, err := os.ReadFile(on.Name())
		if got != stops || c.samples.Missed != stops || (string(written) == "0\n") != stops || err != nil {
			t.Errorf("%d ns: stops %v, missed %v, wrote %q, %v", ns, got, c.samples.Missed, written, err)
		}
	}
}
