package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// maxPacket is the longest packet that is read, libpcap's MAXIMUM_SNAPLEN. A
// file that claims more is damaged or hostile.
const maxPacket = 262144

// Sizes of the buffers between files and packets, in bytes. A capture of a million packets through
// one port costs an eighth less with this one for reading than with 64 KiB.
const (
	readBuffer  = 1 << 18
	writeBuffer = 1 << 16
)

// Info is what a capture says about a packet.
type Info struct {
	// Number counts the packets of the file from 1.
	Number int
	// Time is zero where the file has no time (pcapng simple packet blocks).
	Time time.Time
	// Length is the packet's length on the wire in bytes. It exceeds the length
	// of the data where the capture cut packets short.
	Length int
	// Name is the interface's; "" where the file has no name (a pcap file never has one).
	Name string
	// Comment holds the packet's comments, one on each line.
	Comment string
	// ID is the packet's own, the same wherever it was seen, 0 where the file has no ID: etl2pcapng
	// writes the group of pktmon as epb_packetid.
	ID uint64
	// Dropped says that the packet was dropped where it was seen: etl2pcapng writes that as
	// an epb_verdict of XDP, XDP_DROP (microsoft/etl2pcapng src/main.c).
	Dropped bool
}

// Reader reads the packets of a capture in the order of the file.
type Reader struct {
	count   counter
	buf     *bufio.Reader
	pcap    *pcapgo.Reader
	ng      *pcapgo.NgReader
	names   []string // of the interfaces of the current section
	packets int
	err     error // the error that ended the reading

	// window is what is in buf, as far as quick may read it, taken what it has read.
	window []byte
	taken  int

	// order is that of the numbers in the file, nil where it is not known any more: then
	// pcapgo reads every packet. ticks are the interfaces' units of time, and snap is
	// the longest packet of a pcap file.
	order binary.ByteOrder
	ticks []uint64
	nanos bool
	snap  uint32
}

// counter counts the bytes that were read from r.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// Open reads the head of a capture and finds its format by its first bytes. The
// error is a *[FormatError] when it is not a pcap or pcapng file of Ethernet
// frames. Only the link type of pcap is known here; pcapng may name another one
// later, which is then a *[PacketError] of [Reader.Next].
func Open(r io.Reader) (*Reader, error) {
	c := &Reader{count: counter{r: r}}
	// pcapgo uses a bufio.Reader that it is given, so what is buffered is known
	// here, and with it the offset of a packet.
	c.buf = bufio.NewReaderSize(&c.count, readBuffer)
	magic, err := c.buf.Peek(4)
	if err != nil {
		if err == io.EOF {
			return nil, &FormatError{fmt.Sprintf("it has only %d bytes", len(magic))}
		}
		return nil, err
	}
	switch m := binary.BigEndian.Uint32(magic); m {
	case 0x0a0d0d0a:
		if head, _ := c.buf.Peek(12); len(head) == 12 && binary.LittleEndian.Uint32(head[8:]) == 0x1a2b3c4d {
			c.order = binary.LittleEndian
		}
		err = c.openNg()
	case 0xa1b2c3d4, 0xd4c3b2a1, 0xa1b23c4d, 0x4d3cb2a1:
		if m == 0xd4c3b2a1 || m == 0x4d3cb2a1 {
			c.order, c.nanos = binary.LittleEndian, m == 0x4d3cb2a1
		}
		err = c.openPcap()
	default:
		err = unknownFormat(m)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// unknownFormat names formats that users may try.
func unknownFormat(magic uint32) error {
	switch {
	case magic>>16 == 0x1f8b:
		return &FormatError{"it is compressed with gzip; unpack it first"}
	case magic == 0x28b52ffd:
		return &FormatError{"it is compressed with zstd; unpack it first"}
	case magic == 0xa1b2cd34 || magic == 0x34cdb2a1:
		return &FormatError{"it is a modified pcap file (Kuznetzov); convert it: editcap IN OUT.pcapng"}
	case magic == 0x736e6f6f:
		return &FormatError{"it is a snoop file; convert it: editcap IN OUT.pcapng"}
	case magic == 0x474d4255:
		return &FormatError{"it is a Network Monitor file; convert it: editcap IN OUT.pcapng"}
	}
	return &FormatError{
		fmt.Sprintf("it begins with %08x, which is neither pcap nor pcapng (convert a Windows .etl trace with pktmon etl2pcap or etl2pcapng)",
			magic)}
}

func (r *Reader) openPcap() error {
	p, err := pcapgo.NewReader(r.buf)
	if err != nil {
		return headError("pcap", err)
	}
	if p.LinkType() != layers.LinkTypeEthernet {
		return &FormatError{linkType(p.LinkType())}
	}
	// The reader believes a snap length from the file up to 4 GiB.
	p.SetSnaplen(min(p.Snaplen(), maxPacket))
	r.pcap, r.snap = p, p.Snaplen()
	return nil
}

func (r *Reader) openNg() error {
	n, err := pcapgo.NewNgReader(r.buf, pcapgo.NgReaderOptions{
		WantMixedLinkType: true, // so that another link type is an error, not silence
		SectionEndCallback: func([]pcapgo.NgInterface, pcapgo.NgSectionInfo) {
			r.names, r.order = r.names[:0], nil // the next section may have another byte order
		},
	})
	if err != nil {
		return headError("pcapng", err)
	}
	r.ng = n
	return nil
}

func headError(format string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &FormatError{"the " + format + " header is cut off"}
	}
	return &FormatError{fmt.Sprintf("the %s header is wrong: %v", format, err)}
}

func linkType(l layers.LinkType) string {
	return fmt.Sprintf("the link type is %d (%v); only Ethernet (1) is read", uint16(l), l)
}

// offset returns the byte of the file that is read next.
func (r *Reader) offset() int64 { return r.count.n - int64(r.buf.Buffered()) + int64(r.taken) }

// Next returns the next packet. The data is valid until the next call. At the
// end of the file the error is io.EOF; a *[TruncatedError] when the file ends
// inside a packet, a *[PacketError] when it is damaged. An error stays.
func (r *Reader) Next() (data []byte, info Info, err error) {
	if r.err != nil {
		return nil, Info{}, r.err
	}
	if data, ok := r.quick(&info); ok {
		r.packets++
		info.Number = r.packets
		return data, info, nil
	}
	r.rest()
	start := r.offset()
	if r.pcap != nil {
		data, info, err = r.nextPcap()
		if err == io.EOF && r.offset() > start {
			err = io.ErrUnexpectedEOF // pcapgo: all of a header and none of its data
		}
	} else {
		data, info, err = r.nextNg()
	}
	if err != nil {
		r.err = r.explain(err, start)
		return nil, Info{}, r.err
	}
	r.refill()
	r.packets++
	info.Number = r.packets
	return data, info, nil
}

// explain says at which packet reading ended.
func (r *Reader) explain(err error, start int64) error {
	switch {
	case err == io.EOF:
		return io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &TruncatedError{packets: r.packets, offset: start, skipped: r.offset() - start}
	}
	return &PacketError{packet: r.packets + 1, offset: start, err: err}
}

func (r *Reader) nextPcap() ([]byte, Info, error) {
	data, ci, err := r.pcap.ZeroCopyReadPacketData()
	if err != nil {
		return nil, Info{}, err
	}
	return data, Info{Time: ci.Timestamp, Length: ci.Length}, nil
}

func (r *Reader) nextNg() ([]byte, Info, error) {
	data, ci, opts, err := r.ng.ZeroCopyReadPacketDataWithOptions()
	if err != nil {
		return nil, Info{}, err
	}
	if l, ok := ci.AncillaryData[0].(layers.LinkType); ok && l != layers.LinkTypeEthernet {
		return nil, Info{}, errors.New(linkType(l))
	}
	if len(data) > maxPacket {
		return nil, Info{}, fmt.Errorf("it has %d bytes, more than the %d that a capture may hold", len(data), maxPacket)
	}
	return data, r.ngInfo(ci, opts), nil
}

// xdpDrop is XDP_DROP of linux/bpf.h in the order of little endian, in which Windows writes.
const xdpDrop = 1

func (r *Reader) ngInfo(ci gopacket.CaptureInfo, opts pcapgo.NgPacketOptions) Info {
	for len(r.names) <= ci.InterfaceIndex {
		i, err := r.ng.Interface(len(r.names))
		if err != nil {
			break // cannot be: the reader has checked the index
		}
		r.names = append(r.names, i.Name)
	}
	info := Info{Time: ci.Timestamp, Length: ci.Length}
	if ci.InterfaceIndex < len(r.names) {
		info.Name = r.names[ci.InterfaceIndex]
	}
	if opts.PacketID != nil {
		info.ID = *opts.PacketID
	}
	for _, v := range opts.Verdicts {
		if v.Type == pcapgo.NgEpbVerdictTypeLinuxeBPFXDP && len(v.Data) > 0 && v.Data[0] == xdpDrop {
			info.Dropped = true
		}
	}
	if len(opts.Comments) != 0 {
		info.Comment = strings.Join(opts.Comments, "\n")
	}
	return info
}
