package rota

import (
	"os"
	"regexp"
	"testing"
)

// Who writes records and who judges them may not import each other: what both
// must know is held together here.
func TestRecordIsReadAsWritten(t *testing.T) {
	read := func(file, name string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`(?m)^(?:const |\t)` + name + ` += (.+?)(?: *//.*)?$`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("%s: no constant %s", file, name)
		}
		return string(m[1])
	}
	const writer, reader = "internal/sched/record.go", "lab/oracle/record.go"
	for written, understood := range map[string]string{
		"recordMagic": "magic", "recordBytes": "eventBytes", "maxRecords": "maxEvents",
	} {
		if w, r := read(writer, written), read(reader, understood); w != r {
			t.Errorf("%s: %s is %s; %s: %s is %s", writer, written, w, reader, understood, r)
		}
	}
}
