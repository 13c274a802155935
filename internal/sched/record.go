package sched

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
)

// The limits of Params.Record: events for each CPU.
const (
	MinRecord = 1000
	MaxRecord = 5_000_000
)

// recordMagic begins a file of records; package oracle of the lab reads it.
const recordMagic = "ROTAREC1"

// maxRecords is how many records of all CPUs a file may hold: 2 GB.
const maxRecords = 1 << 25

// recordBytes is the size of a struct rota_record.
const recordBytes = 64

// makeRoom gives the object room for the records that were asked for.
func (s *Scheduler) makeRoom(spec *ebpf.CollectionSpec) error {
	records, ok := spec.Maps["records"]
	capacity, known := spec.Variables["record_capacity"]
	if !ok || !known {
		return fmt.Errorf("scheduler object: no room for a record; build it again with: make build")
	}
	if events := int64(s.record) * int64(s.topology.cpus); events > maxRecords {
		return fmt.Errorf("record of %d events for each of %d CPUs: at most %d in all; use --record-events %d or less",
			s.record, s.topology.cpus, maxRecords, maxRecords/s.topology.cpus)
	}
	records.MaxEntries = max(1, uint32(s.record*s.topology.cpus))
	if err := capacity.Set(uint32(s.record)); err != nil {
		return fmt.Errorf("scheduler object: variable \"record_capacity\": %w", err)
	}
	return nil
}

// WriteRecord writes what the fair and the background
// tier decided since the scheduler was attached: a header of the magic word,
// the number of CPUs and the room of each; then for each CPU the number of its
// records, 0, and the records, all little endian (32 bits). Call it after Detach, when nothing
// is written any more. It fails when Params.Record was 0.
func (s *Scheduler) WriteRecord(w io.Writer) error {
	if s.params.Record == 0 {
		return fmt.Errorf("record: nothing was recorded: start with --record FILE")
	}
	used := make([]uint32, maxCPUs)
	if err := s.coll.Variables["record_used"].Get(used); err != nil {
		return fmt.Errorf("record: read: %w", err)
	}
	memory, err := s.coll.Maps["records"].Memory()
	if err != nil {
		return fmt.Errorf("record: map: %w", err)
	}
	out := bufio.NewWriter(w)
	_, _ = out.WriteString(recordMagic)
	words := func(values ...uint32) { _ = binary.Write(out, binary.LittleEndian, values) }
	words(uint32(s.topology.cpus), uint32(s.params.Record))
	for cpu := range s.topology.cpus {
		count := min(int64(used[cpu]), int64(s.params.Record))
		words(uint32(count), 0)
		part := io.NewSectionReader(memory, int64(cpu)*int64(s.params.Record)*recordBytes, count*recordBytes)
		if _, err := io.Copy(out, part); err != nil {
			return fmt.Errorf("record: CPU %d: %w", cpu, err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("record: write: %w", err)
	}
	return nil
}
