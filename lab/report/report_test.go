package report

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriteThenRead(t *testing.T) {
	want, _ := sample()
	var first, second bytes.Buffer
	if err := Write(&first, want); err != nil {
		t.Fatal(err)
	}
	got, err := Read(bytes.NewReader(first.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read differs from what was written (-want +got):\n%s", diff)
	}
	if err := Write(&second, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same results gave different bytes")
	}
}

func TestContract(t *testing.T) {
	var b bytes.Buffer
	r := Results{Scenario: "wake", Kernel: "6.18.15", CPUs: 4, Seed: 1, Runs: []Run{{Row: "kernel", Scheduler: "kernel"}}}
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"scenario", "kernel", "cpus", "seed", "runs", "row", "scheduler", "config", "attached", "exit"} {
		if !strings.Contains(b.String(), `"`+key+`": `) {
			t.Errorf("the file lacks %q:\n%s", key, b.String())
		}
	}
	for _, empty := range []string{`"metrics": {}`, `"histograms": {}`} {
		if !strings.Contains(b.String(), empty) {
			t.Errorf("the file lacks %s:\n%s", empty, b.String())
		}
	}
}

func TestReadRefuses(t *testing.T) {
	run := func(text string) string {
		return `{"scenario":"a","kernel":"k","cpus":1,"seed":1,"runs":[` + text + `]}`
	}
	tests := map[string]struct{ text, words string }{
		"nothing":         {"", "EOF"},
		"cut off":         {run(`{"row":"kernel","metrics":{"a_us":1`)[:60], "unexpected EOF"},
		"unknown field":   {`{"scenario":"a","cpus":1,"runs":[],"extra":1}`, "unknown field"},
		"text after":      {run("") + "{}", "text after"},
		"invalid UTF-8":   {"{\"scenario\":\"\xff\"}", "UTF-8"},
		"no scenario":     {`{"cpus":1,"runs":[]}`, "scenario"},
		"bad CPUs":        {`{"scenario":"a","cpus":-1,"runs":[]}`, "cpus"},
		"no row":          {run(`{"row":""}`), "row"},
		"metric name":     {run(`{"row":"kernel","metrics":{"A<script>":1}}`), "name must match"},
		"too large":       {run(`{"row":"kernel","metrics":{"a_us":1e999}}`), "1e999"},
		"event name":      {run(`{"row":"kernel","events":[{"name":"a b","text":""}]}`), "event"},
		"negative count":  {run(`{"row":"kernel","histograms":{"a_us":[{"low":0,"high":1,"count":-1}]}}`), "negative"},
		"overlap":         {run(`{"row":"kernel","histograms":{"a_us":[{"low":0,"high":2,"count":1},{"low":1,"high":3,"count":1}]}}`), "ascend"},
		"empty bucket":    {run(`{"row":"kernel","histograms":{"a_us":[{"low":1,"high":1,"count":1}]}}`), "ascend"},
		"count too large": {run(`{"row":"kernel","histograms":{"a_us":[{"low":0,"high":1,"count":99999999999999999999}]}}`), "count"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Read(strings.NewReader(test.text))
			if err == nil || !strings.Contains(err.Error(), test.words) {
				t.Errorf("error is %v: must speak of %q", err, test.words)
			}
		})
	}
}

func TestReadIsBounded(t *testing.T) {
	if _, err := Read(endless{}); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("error of an endless file is %v", err)
	}
}

// endless is a file that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func FuzzRead(f *testing.F) {
	r, info := sample()
	r.Runs = r.Runs[:2]
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"scenario":"a","kernel":"\u0000","cpus":1,"seed":-9,"runs":[{"row":"<b>","metrics":{"a_us":-0.0}}]}`))
	f.Add([]byte(`{"scenario":"a","cpus":1,"runs":[{"row":"kernel","histograms":{"a_us":[{"low":-5,"high":1e300,"count":9}]}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parse(data)
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := Write(&out, r); err != nil {
			t.Fatalf("read, but not written: %v", err)
		}
		if err := Table(&out, r, info, Style{}); err != nil {
			t.Fatalf("table: %v", err)
		}
		if len(data) > 4096 { // pictures are slow
			return
		}
		if err := Page(&out, r, info); err != nil {
			t.Fatalf("page: %v", err)
		}
	})
}

func TestSpread(t *testing.T) {
	tests := []struct {
		values            []float64
		median, low, high float64
	}{
		{[]float64{5}, 5, 5, 5},
		{[]float64{3, 1, 2}, 2, 1, 3},
		{[]float64{4, 1, 2, 3}, 2.5, 1, 4},
	}
	for _, test := range tests {
		s := spreadOf(test.values)
		if s.median != test.median || s.low != test.low || s.high != test.high || s.seeds != len(test.values) {
			t.Errorf("spread of %v is %+v", test.values, s)
		}
	}
}

func TestJudge(t *testing.T) {
	one := func(v float64) spread { return spreadOf([]float64{v}) }
	tests := map[string]struct {
		better      int
		value, base spread
		want        verdict
	}{
		"less is better, less":         {-1, one(50), one(100), win},
		"less is better, more":         {-1, one(150), one(100), loss},
		"more is better, more":         {+1, one(150), one(100), win},
		"more is better, less":         {+1, one(50), one(100), loss},
		"inside the noise":             {-1, one(101), one(100), same},
		"neither is better":            {0, one(50), one(100), unjudged},
		"nothing to compare":           {-1, spread{}, one(100), unjudged},
		"ranges overlap":               {-1, spreadOf([]float64{50, 60, 110}), spreadOf([]float64{90, 100, 120}), same},
		"ranges apart":                 {-1, spreadOf([]float64{50, 60, 80}), spreadOf([]float64{90, 100, 120}), win},
		"both zero":                    {-1, one(0), one(0), same},
		"something instead of nothing": {-1, one(3), one(0), loss},
	}
	for name, test := range tests {
		if got := judge(test.better, test.value, test.base); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestFigure(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0", 1: "1", 44: "44.00", 3.0571: "3.057", 0.1353: "0.1353", 999.97: "1000", 51234.6: "51235", -12.345: "-12.35", 1e13: "1e+13",
	} {
		if got := figure(value); got != want {
			t.Errorf("figure(%v) is %q, want %q", value, got, want)
		}
	}
}

func TestOutcomes(t *testing.T) {
	r, info := sample()
	p := parts(r, info)[0]
	list := p.outcomes()
	if len(list) != 3 {
		t.Fatalf("%d promises, want 3", len(list))
	}
	if !list[0].reached || list[0].measured() != "42.23 us" || list[0].promise() != "at most 60 us" {
		t.Errorf("first promise: %+v, %s, %s", list[0], list[0].measured(), list[0].promise())
	}
	if !list[1].reached || math.Abs(list[1].value-420.0/460) > 1e-9 {
		t.Errorf("second promise: %+v", list[1])
	}
	if list[2].reached || list[2].word() != "NOT REACHED" {
		t.Errorf("third promise: %+v is %q", list[2], list[2].word())
	}
}

func TestTable(t *testing.T) {
	r, info := sample()
	var b bytes.Buffer
	if err := Table(&b, r, info, Style{}); err != nil {
		t.Fatal(err)
	}
	golden(t, "table.txt", b.String())
	if strings.Contains(b.String(), "\x1b") {
		t.Error("the table has colours although none were allowed")
	}
	b.Reset()
	if err := Table(&b, r, info, Style{Color: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "\x1b[32m") {
		t.Error("the table has no colours although they were allowed")
	}
}

func TestTableTakesControlCharactersOut(t *testing.T) {
	r := Results{Scenario: "a", Kernel: "\x1b[31mk", CPUs: 1, Runs: []Run{{Row: "\x1b]0;x\a", Exit: "a\x1bb", Metrics: map[string]float64{"a_us": 1}}}}
	var b bytes.Buffer
	if err := Table(&b, r, Info{}, Style{}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b\a") {
		t.Errorf("control characters reached the terminal: %q", b.String())
	}
}

func TestCompare(t *testing.T) {
	a, info := sample()
	b, _ := sample()
	for i := range b.Runs {
		b.Runs[i].Metrics["wake_hackbench_nice0_avg_us"] *= 0.5
	}
	var out bytes.Buffer
	if err := Compare(&out, a, b, info, Style{}); err != nil {
		t.Fatal(err)
	}
	golden(t, "compare.txt", out.String())
	b.Scenario = "ping"
	if err := Compare(&out, a, b, info, Style{}); err == nil {
		t.Error("two scenarios were compared")
	}
}

func TestHTML(t *testing.T) {
	r, info := sample()
	r.Runs[0].Note = `<script>alert("x")</script>`
	path, err := HTML(filepath.Join(t.TempDir(), "out"), r, info)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o644 {
		t.Errorf("mode %v, error %v: everybody may read it", st.Mode(), err)
	}
	page := string(data)
	for _, forbidden := range []string{"<script", "http-equiv", "<link", "url(", " src=", "#0102", "ZgotmplZ", "NaN", "font-family:Liberation"} {
		if strings.Contains(page, forbidden) {
			t.Errorf("the page contains %q: it must need nothing else and run nothing", forbidden)
		}
	}
	if svgs := strings.Count(page, "<svg "); svgs != 5 { // 4 figures, 1 histogram
		t.Errorf("the page has %d pictures, want 5", svgs)
	}
	for _, wanted := range append(Caveats(), info.Question, info.Command, "watchdog failed to check in") {
		if !strings.Contains(page, wanted) {
			t.Errorf("the page lacks %q", wanted)
		}
	}
	if other, err := HTML(t.TempDir(), r, info); err != nil {
		t.Error(err)
	} else if again, _ := os.ReadFile(other); !bytes.Equal(again, data) {
		t.Error("the same results gave another page")
	}
}

// TestShow writes the sample's page to $SHOW, to be looked at.
func TestShow(t *testing.T) {
	dir := os.Getenv("SHOW")
	if dir == "" {
		t.Skip("set SHOW to a directory")
	}
	r, info := sample()
	if _, err := HTML(dir, r, info); err != nil {
		t.Fatal(err)
	}
}

// golden compares with a file in testdata; set UPDATE=1 to write it anew.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", name, diff)
	}
}
