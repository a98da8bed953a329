// SPDX-License-Identifier: Apache-2.0

// Package dns is a resolver for tests, which answers what it is told.
package dns

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync/atomic"

	"golang.org/x/net/dns/dnsmessage"
)

// Resolver answers every question for an A record with the next of the addresses, the last one for
// ever.
func Resolver(addresses ...string) *net.Resolver {
	var asked atomic.Int32
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe() // not a packet connection: messages are framed as over TCP
		go func() {
			defer func() { _ = theirs.Close() }()
			buffer := make([]byte, 2)
			if _, err := io.ReadFull(theirs, buffer); err != nil {
				return
			}
			question := make([]byte, binary.BigEndian.Uint16(buffer))
			var message dnsmessage.Message
			if _, err := io.ReadFull(theirs, question); err != nil || message.Unpack(question) != nil {
				return
			}
			message.Response, message.Authoritative, message.Additionals = true, true, nil
			if q := message.Questions[0]; q.Type == dnsmessage.TypeA {
				n := min(int(asked.Add(1)), len(addresses))
				message.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, Type: q.Type},
					Body:   &dnsmessage.AResource{A: netip.MustParseAddr(addresses[n-1]).As4()},
				}}
			}
			packed, err := message.Pack()
			if err == nil {
				_, _ = theirs.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(packed))), packed...))
			}
		}()
		return ours, nil
	}}
}
