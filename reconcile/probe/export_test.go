package probe

// Phase is where in its period a probe ticks.
var Phase = phase
