package reconcile

// What tests of the pure parts reach for.
var (
	Expand        = expand
	CrashDelay    = crashDelay
	NextLevel     = nextLevel
	EndedAt       = endedAt
	Resources     = resources
	Hostname      = hostname
	OOMScoreAdj   = oomScoreAdj
	SandboxSpec   = sandboxSpec
	ContainerSpec = containerSpec
	EncodeState   = encodeState
	DecodeState   = decodeState
	EncodePod     = encodePod
	DecodePod     = decodePod
)
