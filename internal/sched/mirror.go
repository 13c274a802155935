package sched

// The structs of bpf/rota.h, byte for byte. TestMirror holds them against the
// BTF of the object.

const (
	maxCPUs     = 1024
	maxGroups   = 2048 // cgroups that rota knows apart, with the root
	maxLLCs     = 256
	waitBuckets = 25
	exitText    = 1024
	exitDump    = 32768
)

const eventExit = 7

// The switches of rotaKnobs.Fair.
const (
	fairRunToParity      = 1
	fairPreemptShort     = 2
	fairEligibilityCheck = 4
	fairBriefRequests    = 8
	fairLazyPreemption   = 16
	fairHandOver         = 32
)

// lendCPU marks an owner of a CPU that others may use while it would be idle.
const lendCPU = 1 << 16

// Why a task waits for another: the index of a counter, and the bit of a switch.
const (
	reasonFutex = iota
	reasonLock
	reasonWake
	reasonBinder
	reasons

	// wantCounters is beside the waits in what decides which programs are attached.
	wantCounters = 1 << 31
)

type rotaTopology struct {
	NrCpus uint32
	NrLlcs uint32
}

type rotaKnobs struct {
	SliceNs      uint64
	StarvationNs uint64
	NrClasses    uint32
	Watch        uint32
	Tiers        uint32
	Fair         uint32
	Inherit      uint32
	Frequency    uint32
}

type rotaCounters struct {
	LatencyPs uint64
	Epoch     uint32
	Waits     uint16
	Cycles    uint16
}

type rotaClass struct {
	SliceNs     uint64
	CapNs       uint64
	Weight      uint32
	Tier        uint32
	Inherit     uint32
	Dynamic     uint32
	OwnFirst    uint32
	OwnEnd      uint32
	MemoryBound uint32
	LendAfterNs uint32
}

type rotaClassStats struct {
	Tasks         int64
	RuntimeNs     uint64
	ProgressNs    uint64
	WaitedNs      uint64
	CountedNs     uint64
	Dispatches    uint64
	Preempting    uint64
	Preempted     uint64
	CapHits       uint64
	Rescues       uint64
	Returns       uint64
	Expected      uint64
	WaitMaxNs     uint64
	WaitHist      [waitBuckets]uint64
	WindowStartNs uint64
	WindowUsedNs  uint64
}

type rotaCpuStats struct {
	Dispatches  [3]uint64
	Direct      uint64
	Handed      uint64
	Preemptions uint64
	Steals      uint64
	Rescues     uint64
	CapHits     uint64
	Limited     uint64
	Boosts      [reasons]uint64
	Chained     uint64
	Fetched     uint64
	Ended       uint64
	Spent       uint64
	BoostedNs   uint64
	BoundNs     uint64
	GuestNs     uint64
	StrayNs     uint64
	Asked       uint64
	Known       uint64
}

// The bits of rotaKnown.Epoch.
const (
	knownComm   = 1
	knownCgroup = 2
	knownUser   = 4
	knownShift  = 3 // epochs count above them
)

type rotaKnown struct {
	Comm   [16]byte
	Cgroup uint64
	User   uint32
	Epoch  uint32
}

type rotaKnowing struct {
	Epoch  uint32
	Daemon uint32
}

type rotaEvent struct {
	Kind    uint32
	Tid     uint32
	Tgid    uint32
	Asked   uint32
	StartNs uint64
}

type rotaSetClass struct {
	StartNs uint64
	Tid     uint32
	Class   uint32
	Result  int32
	Asked   uint32
	Alone   uint32
	Pad     uint32
}

type rotaExplain struct {
	SliceNs     uint64
	BoostedNs   uint64
	ReadyNs     uint64
	WaitsNs     uint64
	Given       uint64
	Lifted      uint64
	LagNs       int64
	Tid         uint32
	Result      int32
	Class       uint32
	Level       uint32
	Weight      uint32
	Cpu         uint32
	Running     uint32
	Awaited     uint32
	Spent       uint32
	WaitsTid    uint32
	WaitsReason uint32
	WaitsGives  uint32
	Policy      uint32
	Pad         uint32
}

type rotaExit struct {
	Kind   uint64
	Code   int64
	Reason [128]byte
	Msg    [exitText]byte
	Dump   [exitDump]byte
}
