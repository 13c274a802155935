package pairs

import "testing"

const sample = `binder stats:
BC_TRANSACTION: 803
proc: active 2 total 3
thread: active 5 total 6
node: active 4 total 7
ref: active 1 total 2
death: active 9 total 9
transaction: active 8 total 1610
transaction_complete: active 3 total 1610
proc 178
context binder
  threads: 3
  refs: 0 s 0 w 0
  buffers: 2
  pages: 0:129:125
proc 171
context hwbinder
  buffers: 5
`

func TestReadBooks(t *testing.T) {
	b, err := readBooks(sample)
	if want := (Books{2, 5, 4, 1, 9, 8, 7}); b != want || err != nil {
		t.Errorf("%+v, error %v, want %+v", b, err, want)
	}
	if b, err := readBooks("binder stats:\n"); b != (Books{}) || err != nil {
		t.Errorf("a driver that nobody has used: %+v, error %v", b, err)
	}
	for _, text := range []string{"", "proc: active 1 total 1\n", "binder stats:\nproc: active x total 1\n", "binder stats:\nbuffers: many\n"} {
		if _, err := readBooks(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func FuzzReadBooks(f *testing.F) {
	f.Add(sample)
	f.Fuzz(func(t *testing.T, text string) { readBooks(text) })
}
