package throughput

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"rota/bench/binder"
)

func TestMinTime(t *testing.T) {
	for text, want := range map[string]struct {
		time time.Duration
		n    int
	}{"0.5": {time: 500 * time.Millisecond}, "2s": {time: 2 * time.Second}, "3600s": {time: time.Hour}, "1000x": {n: 1000}} {
		d, n, err := ParseMinTime(text)
		if d != want.time || n != want.n || err != nil {
			t.Errorf("%s: %v, %d, %v", text, d, n, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "x", "0x", "1.5x", "NaN", "Inf", "5000000000x", "3601s"} {
		if _, _, err := ParseMinTime(text); err == nil || !strings.Contains(err.Error(), "--benchmark_min_time") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestPayloads(t *testing.T) {
	all, err := Options{}.payloads()
	if err != nil || len(all) != 15 || all[0] != 4 || all[14] != 65536 {
		t.Errorf("%v, %v", all, err)
	}
	some, err := Options{Gather: true, Filter: regexp.MustCompile(`binderize/(4|1024)$`)}.payloads()
	if err != nil || len(some) != 2 {
		t.Errorf("%v, %v", some, err)
	}
	if _, err := (Options{Filter: regexp.MustCompile("none")}).payloads(); err == nil {
		t.Error("no name matches, and no fault")
	}
}

func TestNext(t *testing.T) {
	o := Options{MinTime: 500 * time.Millisecond}
	for _, test := range []struct {
		n    int
		took time.Duration
		want int
	}{{1, 100 * time.Microsecond, 10}, {1000, 100 * time.Millisecond, 7000}, {1000, 499 * time.Millisecond, 1403}, {5, 0, 50}, {maxIterations, time.Second, maxIterations}} {
		if got := o.next(Measured{Iterations: test.n, Real: test.took}); got != test.want {
			t.Errorf("%d in %v: next %d, want %d", test.n, test.took, got, test.want)
		}
	}
}

// TestBytesPerSecond takes the figures of AOSP's page: 8 bytes in 69974 ns are
// 114 kB/s, whatever the number of iterations; the page multiplied by that.
func TestBytesPerSecond(t *testing.T) {
	m := Measured{Payload: 8, Iterations: 21296, Real: 21296 * 69974}
	if got := m.BytesPerSecond(); got < 114327 || got > 114329 {
		t.Errorf("%v", got)
	}
	if (Measured{}).BytesPerSecond() != 0 {
		t.Error("nothing is not 0")
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	o := Options{}
	if err := o.Header(&b); err != nil {
		t.Fatal(err)
	}
	o.Row(&b, Measured{Name: o.Name(8), Payload: 8, Iterations: 21296, Real: 21296 * 69974, Client: 21296 * 32700, Server: 21296 * 99})
	want := `----------------------------------------------------------------------------------
Benchmark                        Time             CPU   Iterations UserCounters...
----------------------------------------------------------------------------------
BM_sendVec_binder/8          69974 ns      32700 ns        21296 bytes_per_second=111.649Ki/s server_cpu_ns=99.0
`
	if b.String() != want {
		t.Errorf("\n%s\nwant\n%s", b.String(), want)
	}
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	r := &Result{Rows: []Measured{{Name: "BM_sendVec_binder/4", Payload: 4, Iterations: 10, Real: 1000, Client: 500, Server: 300}}}
	if err := r.JSON(&b, Context{CPUs: 4}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Context    map[string]any
		Benchmarks []map[string]any
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"date", "host_name", "executable", "num_cpus", "mhz_per_cpu", "cpu_scaling_enabled", "caches", "load_avg", "library_build_type"} {
		if _, there := got.Context[name]; !there {
			t.Errorf("context: no %s", name)
		}
	}
	row := got.Benchmarks[0]
	for name, want := range map[string]any{
		"name": "BM_sendVec_binder/4", "run_name": "BM_sendVec_binder/4", "run_type": "iteration", "iterations": 10.0,
		"real_time": 100.0, "cpu_time": 50.0, "time_unit": "ns", "threads": 1.0, "repetition_index": 0.0,
		"bytes_per_second": 4e7, "server_cpu_time": 30.0,
	} {
		if row[name] != want {
			t.Errorf("%s: %v, want %v", name, row[name], want)
		}
	}
}

func TestFigure(t *testing.T) {
	for ns, want := range map[float64]string{0.5: "0.500", 5: "5.00", 50: "50.0", 500: "500", 1e10: "1.0000e+10"} {
		if got := strings.TrimSpace(figure(ns)); got != want {
			t.Errorf("%v: %s, want %s", ns, got, want)
		}
	}
}

// FuzzAnswer: a client may send anything.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte{4, 0, 0, 0, 1, 2, 3, 4}, false)
	f.Fuzz(func(t *testing.T, data []byte, gather bool) {
		var reply binder.Parcel
		call := binder.Received(data)
		call.Code = codeEcho
		answer(gather, call, &reply)
	})
}
