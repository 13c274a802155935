package class

import (
	"cmp"
	"slices"
	"strconv"
)

// index finds the rules that may match a workload without trying all of them.
//
// Every rule demands texts: a component of the cgroup path that begins with
// "upf-", a comm that begins with "Render", the user "alice". Each rule is
// filed under one of its demands, the one that the fewest rules share, so
// that "kubepods.slice" does not collect them all. A workload then looks up
// every beginning of its own texts that some rule is filed under. Rules
// without any fixed beginning ("*-upf") are tried for everybody.
type index struct {
	filed   map[demand][]int32
	lengths [subjects][]int // which lengths of text are filed, per subject
	always  []int32
}

type subject uint8

const (
	ofCgroup subject = iota
	ofExe
	ofComm
	ofUser
	ofFunction
	subjects
)

// demand is a text that some name of the workload must begin with; a user and a
// function must be equal to it.
type demand struct {
	subject subject
	text    string
}

func buildIndex(rules []rule) index {
	demands := make([][]demand, len(rules))
	shared := map[demand]int{}
	for i := range rules {
		demands[i] = rules[i].demands()
		for _, d := range demands[i] {
			shared[d]++
		}
	}
	x := index{filed: map[demand][]int32{}}
	for i, list := range demands {
		if len(list) == 0 {
			x.always = append(x.always, int32(i))
			continue
		}
		best := slices.MinFunc(list, func(a, b demand) int {
			return cmp.Or(shared[a]-shared[b], len(b.text)-len(a.text))
		})
		x.file(best, int32(i))
	}
	return x
}

func (x *index) file(d demand, rule int32) {
	x.filed[d] = append(x.filed[d], rule)
	if lengths := &x.lengths[d.subject]; !slices.Contains(*lengths, len(d.text)) {
		*lengths = append(*lengths, len(d.text))
		slices.Sort(*lengths)
	}
}

func (r *rule) demands() []demand {
	var list []demand
	add := func(s subject, text string) {
		if text != "" {
			list = append(list, demand{s, text})
		}
	}
	for _, g := range r.cgroup {
		add(ofCgroup, g.prefix())
	}
	for _, g := range r.exe {
		add(ofExe, g.prefix())
	}
	add(ofComm, r.comm.prefix())
	add(ofUser, r.user)
	add(ofFunction, r.function)
	if r.byUID {
		add(ofUser, strconv.FormatUint(uint64(r.uid), 10))
	}
	return list
}

// each calls try with every list of rules that may match, each in ascending
// order.
func (x *index) each(w Workload, cgroup, exe []string, try func([]int32)) {
	try(x.always)
	for _, name := range cgroup {
		x.beginnings(ofCgroup, name, try)
	}
	for _, name := range exe {
		x.beginnings(ofExe, name, try)
	}
	x.beginnings(ofComm, w.Comm, try)
	if len(x.lengths[ofUser]) > 0 {
		try(x.filed[demand{ofUser, w.User}])
		try(x.filed[demand{ofUser, strconv.FormatUint(uint64(w.UID), 10)}])
	}
	for _, name := range w.Functions {
		try(x.filed[demand{ofFunction, name}])
	}
}

func (x *index) beginnings(s subject, name string, try func([]int32)) {
	for _, n := range x.lengths[s] {
		if n > len(name) {
			return
		}
		if list := x.filed[demand{s, name[:n]}]; list != nil {
			try(list)
		}
	}
}
