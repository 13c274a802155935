package main

import (
	"strings"
	"testing"
)

func TestTally(t *testing.T) {
	tests := []struct {
		name, events, last string
		ok                 bool
	}{
		{"nothing ran", ``, "0 passed, 0 failed, 0 skipped", false},
		{"all passed", `
{"Action":"pass","Package":"rota/a","Test":"TestX"}
{"Action":"pass","Package":"rota/a"}`, "1 passed, 0 failed, 0 skipped", true},
		{"a group is not a test", `
{"Action":"pass","Package":"rota/a","Test":"TestX/one/deep"}
{"Action":"pass","Package":"rota/a","Test":"TestX/one"}
{"Action":"pass","Package":"rota/a","Test":"TestX/two"}
{"Action":"skip","Package":"rota/a","Test":"TestX/three"}
{"Action":"pass","Package":"rota/a","Test":"TestX"}
{"Action":"pass","Package":"rota/a"}`, "2 passed, 0 failed, 1 skipped", true},
		{"one failure, counted once", `
{"Action":"fail","Package":"rota/a","Test":"TestX/one"}
{"Action":"pass","Package":"rota/a","Test":"TestX/two"}
{"Action":"fail","Package":"rota/a","Test":"TestX"}
{"Action":"fail","Package":"rota/a"}`, "1 passed, 1 failed, 0 skipped", false},
		{"a group fails by itself", `
{"Action":"pass","Package":"rota/a","Test":"TestX/two"}
{"Action":"fail","Package":"rota/a","Test":"TestX"}
{"Action":"fail","Package":"rota/a"}`, "1 passed, 1 failed, 0 skipped", false},
		{"does not compile", `
{"ImportPath":"rota/b","Action":"build-output","Output":"b.go:1: undefined: x\n"}
{"ImportPath":"rota/b","Action":"build-fail"}
{"Action":"fail","Package":"rota/b","FailedBuild":"rota/b"}
{"Action":"pass","Package":"rota/a","Test":"TestX"}`, "1 passed, 1 failed, 0 skipped", false},
		{"words inside a test's output do not count", `
{"Action":"output","Package":"rota/a","Test":"TestX","Output":"{\"Action\":\"fail\",\"Test\":\"TestY\"}\n"}
{"Action":"pass","Package":"rota/a","Test":"TestX"}`, "1 passed, 0 failed, 0 skipped", true},
		{"no tests in a package", `
{"Action":"skip","Package":"rota/c"}
{"Action":"pass","Package":"rota/a","Test":"TestX"}`, "1 passed, 0 failed, 0 skipped", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			err := run("", nil, strings.NewReader(test.events), &out)
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if got := lines[len(lines)-1]; got != test.last {
				t.Errorf("last line %q, want %q", got, test.last)
			}
			if (err == nil) != test.ok {
				t.Errorf("error %v, want ok %v", err, test.ok)
			}
		})
	}
}

func TestTallyShowsWhatAFailedTestPrinted(t *testing.T) {
	var out strings.Builder
	_ = run("", nil, strings.NewReader(`
{"Action":"output","Package":"rota/a","Test":"TestX","Output":"got 1, want 2\n"}
{"Action":"fail","Package":"rota/a","Test":"TestX"}`), &out)
	if !strings.Contains(out.String(), "got 1, want 2") {
		t.Errorf("the reason is missing in:\n%s", &out)
	}
}

func TestTallyNamesSlowTests(t *testing.T) {
	var out strings.Builder
	_ = run("", nil, strings.NewReader(`
{"Action":"pass","Package":"rota/a","Test":"TestSlow","Elapsed":61.2}
{"Action":"pass","Package":"rota/a","Test":"TestQuick","Elapsed":0.1}`), &out)
	if !strings.Contains(out.String(), "TestSlow") || strings.Contains(out.String(), "TestQuick") {
		t.Errorf("want a line for the slow test alone, got:\n%s", &out)
	}
}
