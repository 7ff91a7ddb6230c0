// Package agree makes flows of a lab with real sockets on a live network, and holds
// what comes back against the trace of the same flow.
//
//	traced, err := ...  // flows with their traces, by sim/lab
//	results, err := agree.Run(ctx, c, traced, agree.Options{})
//
// A flow agrees when what a program sees is what the trace says: an answer where the
// verdict is delivered, a refusal where it is rejected, nothing in all other cases,
// also where the model does not know; and when the server that answered, its address
// and the source that it saw are those of one of the trace's ways. The expectation is
// the trace's alone. The package must not know what a lab expects of a flow, and it
// must not decide why something did not arrive.
package agree
