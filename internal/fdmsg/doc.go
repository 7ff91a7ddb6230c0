// Package fdmsg sends messages with open files beside them over Unix sockets that
// keep messages apart (SOCK_SEQPACKET). A message is JSON.
//
// It knows nothing of what the messages say.
package fdmsg
