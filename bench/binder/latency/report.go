package latency

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Report writes the result in the original's JSON: the same names, nesting,
// order, spaces and digits. With Extended one more key, "extended", stands before
// the last.
func (r *Result) Report(w io.Writer, about Context) error {
	var b strings.Builder
	o := r.Options
	fmt.Fprintf(&b, "{\n\"cfg\":{\"pair\":%d,\"iterations\":%d,\"deadline_us\":%d},\n", o.Pairs, o.Iterations, o.Deadline.Microseconds())
	for _, i := range slices.Sorted(maps.Keys(r.Pairs)) {
		r.pair(&b, i, r.Pairs[i])
	}
	if o.Extended {
		text, err := json.Marshal(r.extended(about))
		if err != nil {
			return fmt.Errorf("report: %w", err)
		}
		fmt.Fprintf(&b, "\"extended\": %s,\n", text)
	}
	verdict := "FAIL"
	if r.inherited() {
		verdict = "PASS"
	}
	fmt.Fprintf(&b, "\"inheritance\": %q\n}\n", verdict)
	_, err := io.WriteString(w, b.String())
	return err
}

// pair writes the figures of one pair. A client that missed its first deadline
// has no ordinary call yet: it is left out as a whole, as JSON knows no number
// for that.
func (r *Result) pair(b *strings.Builder, i int, s Samples) {
	if len(s.Other.Spans) == 0 || len(s.Fifo.Spans) == 0 {
		return
	}
	calls, apart := s.calls(), s.notSynced(r.Options)
	ratio := 1 - float64(apart)/float64(calls)
	sync := "POOR"
	if ratio > goodSync {
		sync = "GOOD"
	}
	other, fifo := r.Options.deadlines()
	fmt.Fprintf(b, "\"P%d\":{\"SYNC\":%q,\"S\":%d,\"I\":%d,\"R\":%s,\n", i, sync, calls-apart, calls, number(ratio, 6))
	fmt.Fprintf(b, "  \"other_ms\":%s,\n  \"fifo_ms\": %s\n},\n", r.times(s.Other, other), r.times(s.Fifo, fifo))
}

// times writes the figures of one kind of caller: the two originals differ in
// their spaces.
func (r *Result) times(s Series, deadline time.Duration) string {
	comma := ","
	if r.Options.Kind == HwBinder {
		comma = ", "
	}
	f := s.figures(deadline)
	ms := func(v float64) string { return fmt.Sprintf("%-4s", number(v, 2)) }
	return strings.Join([]string{
		`{ "avg":` + ms(f.avg), `"wst":` + ms(f.worst), `"bst":` + ms(f.best),
		fmt.Sprintf(`"miss":%d`, f.miss), `"meetR":` + number(f.meet, 5) + "}",
	}, comma)
}

// number writes as C++ streams do: so many digits that count, and no zeros
// behind them.
func number(v float64, digits int) string { return fmt.Sprintf("%.*g", digits, v) }
