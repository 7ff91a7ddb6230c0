// Package bench measures the simulator: a packet of a cached flow, the first
// packet of a flow, the compilation of HNS objects into rules. It holds the
// budget of each figure and prints measured against allowed as a table.
//
// The benchmarks run over rules as sim/windows/hns compiles them, not over rules made
// for the purpose. The package must not hold behaviour of the simulator, and no
// test fails because a machine is slow.
package bench
