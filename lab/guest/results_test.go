package guest

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const endLine = `{"type":"end","exit":0}` + "\n"

func TestWriterAndReaderAgree(t *testing.T) {
	var stream bytes.Buffer
	w := newWriter(&stream)
	w.metric("wake_p99_us", 1.5)
	w.histogram("wake_us", []Bucket{{0, 1, 3}, {1, 2, 0}})
	w.event("reloaded", "twice")
	w.value("virtual_time_s", 2)
	w.log("a\tb\nc")
	w.end(0)
	got, err := ReadResults(&stream)
	if err != nil {
		t.Fatal(err)
	}
	want := Results{
		Metrics:    map[string]float64{"wake_p99_us": 1.5},
		Histograms: map[string][]Bucket{"wake_us": {{0, 1, 3}, {1, 2, 0}}},
		Events:     []Event{{Name: "reloaded", Text: "twice"}, {Name: "virtual_time_s", Value: 2}},
		Log:        []string{"a\tb\nc"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWriterFailsTheRun(t *testing.T) {
	for name, write := range map[string]func(*writer){
		"bad name":         func(w *writer) { w.metric("Upper", 1) },
		"long name":        func(w *writer) { w.event(strings.Repeat("a", maxName+1), "") },
		"not a number":     func(w *writer) { w.metric("a_us", math.NaN()) },
		"infinite":         func(w *writer) { w.metric("a_us", math.Inf(1)) },
		"infinite bucket":  func(w *writer) { w.histogram("a_us", []Bucket{{0, math.Inf(1), 1}}) },
		"too many buckets": func(w *writer) { w.histogram("a_us", make([]Bucket, maxBuckets+1)) },
	} {
		var stream bytes.Buffer
		w := newWriter(&stream)
		write(w)
		w.end(1)
		got, err := ReadResults(&stream)
		if err != nil || len(got.Errors) != 1 || !w.hasFailed() {
			t.Errorf("%s: errors %q, failed %v, read: %v", name, got.Errors, w.hasFailed(), err)
		}
	}
}

func TestReadResultsRefuses(t *testing.T) {
	metric := `{"type":"metric","name":"a_us","value":1}` + "\n"
	for name, c := range map[string]struct{ stream, want string }{
		"upper case":       {`{"type":"metric","name":"A","value":1}`, "must match"},
		"no name":          {`{"type":"event","text":"x"}`, "must match"},
		"long name":        {`{"type":"metric","name":"` + strings.Repeat("a", 101) + `","value":1}`, "must match"},
		"no value":         {`{"type":"metric","name":"a_us"}`, "no value"},
		"huge number":      {`{"type":"metric","name":"a_us","value":1e999}`, "cannot unmarshal"},
		"not a number":     {`{"type":"metric","name":"a_us","value":NaN}`, "invalid character"},
		"twice":            {metric + metric, "reported twice"},
		"unknown field":    {`{"type":"log","text":"x","evil":1}`, "unknown field"},
		"unknown type":     {`{"type":"exec","text":"x"}`, "unknown type"},
		"two objects":      {`{"type":"log","text":"x"} {}`, "more than one object"},
		"garbage":          {"\x01\x02", "invalid character"},
		"invalid UTF-8":    {`{"type":"log","text":"` + "\xff" + `"}`, "not UTF-8"},
		"long line":        {`{"type":"log","text":"` + strings.Repeat("x", maxLine) + `"}`, "longer than"},
		"long text":        {`{"type":"log","text":"` + strings.Repeat("x", maxText+1) + `"}`, "text longer"},
		"too many":         {strings.Repeat(`{"type":"log","text":"x"}`+"\n", maxNames+1), "more than 10000"},
		"too much":         {strings.Repeat(`{"type":"log","text":"`+strings.Repeat("x", maxText)+`"}`+"\n", 65), "MiB of results"},
		"after the end":    {endLine + metric, "after the end"},
		"bad exit":         {`{"type":"end","exit":256}`, "0..255"},
		"no exit":          {`{"type":"end"}`, "0..255"},
		"negative count":   {`{"type":"histogram","name":"a_us","buckets":[{"low":0,"high":1,"count":-1}]}`, "negative"},
		"wrong order":      {`{"type":"histogram","name":"a_us","buckets":[{"low":5,"high":6,"count":1},{"low":1,"high":2,"count":1}]}`, "out of order"},
		"upside down":      {`{"type":"histogram","name":"a_us","buckets":[{"low":5,"high":1,"count":1}]}`, "out of order"},
		"empty":            {"", "no end line"},
		"cut off":          {metric, "no end line"},
		"cut in mid-line":  {metric + `{"type":"metric","na`, "unexpected EOF"},
		"names the line":   {metric + "\n" + `{}`, "line 3"},
		"deeply nested":    {strings.Repeat("[", 20000), "max depth"},
		"array for object": {`[]`, "cannot unmarshal"},
	} {
		stream := c.stream
		if name != "cut off" && name != "empty" && name != "cut in mid-line" && name != "after the end" {
			stream += "\n" + endLine
		}
		if _, err := ReadResults(strings.NewReader(stream)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestReadResultsKeepsWhatItRead(t *testing.T) {
	r, err := ReadResults(strings.NewReader(`{"type":"metric","name":"a_us","value":1}` + "\n"))
	if !errors.Is(err, ErrTruncated) || r.Metrics["a_us"] != 1 {
		t.Errorf("%v, %v", r.Metrics, err)
	}
}

func TestReadResultsTakesControlCharactersOut(t *testing.T) {
	r, err := ReadResults(strings.NewReader(`{"type":"log","text":"\u001b[2Jx\u009b"}` + "\n" + endLine))
	if err != nil || r.Log[0] != "?[2Jx?" {
		t.Errorf("%q, %v", r.Log, err)
	}
}

func FuzzReadResults(f *testing.F) {
	f.Add([]byte(endLine))
	f.Add([]byte(`{"type":"metric","name":"a_us","value":1}` + "\n" + endLine))
	f.Add([]byte(`{"type":"histogram","name":"a_us","buckets":[{"low":0,"high":1,"count":1}]}` + "\n"))
	f.Add([]byte(`{"type":"error","text":"\u001b"}` + "\n{"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r, err := ReadResults(bytes.NewReader(stream))
		if err == nil && !bytes.Contains(stream, []byte("end")) {
			t.Error("accepted a stream without an end")
		}
		for name, v := range r.Metrics {
			if math.IsNaN(v) || math.IsInf(v, 0) || len(name) > maxName || name == "" || name[0] < 'a' || name[0] > 'z' {
				t.Errorf("metric %q = %v", name, v)
			}
		}
		for _, l := range append(r.Log, r.Errors...) {
			if strings.ContainsAny(l, "\x1b\x00\r") {
				t.Errorf("control characters in %q", l)
			}
		}
	})
}
