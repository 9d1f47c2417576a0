package crash

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// sector is what a disk writes as a whole or not at all.
const sector = 512

// Disk is a file system that loses what was not synced when it loses power. What was written to a file is kept once the
// file is synced, and a name in a folder once the folder is.
type Disk struct {
	root  *node
	files map[int]*node // by descriptor
	nodes int
}

// NewDisk returns an empty disk.
func NewDisk() *Disk {
	d := &Disk{files: map[int]*node{}}
	d.root = d.create(true)
	return d
}

func (d *Disk) create(folder bool) *node {
	d.nodes++
	return &node{number: d.nodes, folder: folder, names: map[string]*node{}}
}

// node is a file or a folder.
type node struct {
	number  int
	folder  bool
	data    []byte           // of a file
	names   map[string]*node // of a folder
	synced  content
	changes []change // since the last sync
}

// content is what a file or a folder had at its last sync.
type content struct {
	data  []byte
	names map[string]*node
}

// change is one that a loss of power may undo.
type change struct {
	data    []byte // written at that place
	at      int64
	resize  bool // to at
	removed string
	added   string
	node    *node
}

// After returns the disk after some more operations. d stays as it is.
func (d *Disk) After(ops []Op) (*Disk, error) {
	d = d.Killed()
	for i, o := range ops {
		if err := d.Apply(o); err != nil {
			return nil, fmt.Errorf("operation %d, %v: %w", i, o, err)
		}
	}
	return d, nil
}

// Apply makes one operation.
func (d *Disk) Apply(o Op) error {
	if o.Err != 0 || o.Kind == Note {
		return nil
	}
	var dir, to *node
	var err error
	if o.Path != "" {
		if dir, err = d.find(path.Dir(o.Path)); err != nil {
			return err
		}
	}
	name := path.Base(o.Path)
	switch o.Kind {
	case Open:
		if o.Creates {
			dir.set(change{added: name, node: d.create(false)})
		}
		file, err := d.find(o.Path)
		if err != nil {
			return err
		}
		if o.Empties {
			file.write(change{resize: true})
		}
		d.files[o.FD] = file
	case Mkdir:
		dir.set(change{added: name, node: d.create(true)})
	case Remove:
		dir.set(change{removed: name})
	case Rename:
		if to, err = d.find(path.Dir(o.To)); err != nil {
			return err
		}
		if to != dir {
			return fmt.Errorf("a rename from one folder to another is not modelled")
		}
		dir.set(change{removed: name, added: path.Base(o.To), node: dir.names[name]})
	default:
		file := d.files[o.FD]
		if file == nil {
			return fmt.Errorf("no file has the descriptor %d", o.FD)
		}
		switch o.Kind {
		case Write:
			file.write(change{data: o.Data, at: o.Offset})
		case Resize:
			if !o.Keeps || o.Offset > int64(len(file.data)) {
				file.write(change{resize: true, at: o.Offset})
			}
		case Sync:
			file.sync()
		}
	}
	return nil
}

func (d *Disk) find(name string) (*node, error) {
	at := d.root
	for part := range strings.SplitSeq(path.Clean(name), "/") {
		if part == "." || part == "" {
			continue
		}
		if at = at.names[part]; at == nil {
			return nil, fmt.Errorf("there is no %s", name)
		}
	}
	return at, nil
}

func (n *node) write(c change) {
	n.data = c.write(n.data)
	n.changes = append(n.changes, c)
}

func (n *node) set(c change) {
	c.set(n.names)
	n.changes = append(n.changes, c)
}

func (n *node) sync() {
	n.changes = nil
	n.synced = content{slices.Clone(n.data), maps.Clone(n.names)}
}

// write returns the data of a file after the change.
func (c change) write(data []byte) []byte {
	size := c.at + int64(len(c.data))
	if c.resize || size > int64(len(data)) {
		data = slices.Grow(data, max(0, int(size)-len(data)))
		old := len(data)
		data = data[:size]
		if int(size) > old {
			clear(data[old:])
		}
	}
	copy(data[c.at:], c.data)
	return data
}

func (c change) set(names map[string]*node) {
	if c.removed != "" && (c.node == nil || names[c.removed] == c.node) {
		delete(names, c.removed)
	}
	if c.added != "" {
		names[c.added] = c.node
	}
}

// Loss decides what a loss of power leaves of what was not synced. Each sector of a write, and each change of a file's
// size, stays with that probability, in any order, except that a sector loses all writes to it after the first that is
// lost: what goes to the disk is the whole sector. Names of a folder change in their order: each change stays with that
// probability, and then those after it are lost, as in file systems with a journal.
type Loss struct {
	Percent int
	Rand    *rand.Rand
}

func (l Loss) keeps() bool { return l.Percent > 0 && l.Rand.IntN(100) < l.Percent }

// Killed returns a copy of the disk after its process was killed: all is there, synced or not.
func (d *Disk) Killed() *Disk {
	return &Disk{root: d.root.copy(map[*node]*node{}), files: map[int]*node{}, nodes: d.nodes}
}

// Crash returns a copy of the disk after a loss of power. All that is left is synced.
func (d *Disk) Crash(loss Loss) *Disk {
	copies := map[*node]*node{}
	c := &Disk{root: d.root.copy(copies), files: map[int]*node{}, nodes: d.nodes}
	all := slices.Collect(maps.Values(copies))
	slices.SortFunc(all, func(a, b *node) int { return cmp.Compare(a.number, b.number) }) // the same loss for the same seed
	for _, n := range all {
		n.lose(loss)
	}
	return c
}

// InWrite returns the disk in the middle of a write, of which half is made, to f.
func (d *Disk) InWrite(o Op, f func()) {
	file := d.files[o.FD]
	data, n := slices.Clone(file.data), len(file.changes)
	file.write(change{data: o.Data[:len(o.Data)/2], at: o.Offset})
	f()
	file.data, file.changes = data, file.changes[:n]
}

func (n *node) copy(copies map[*node]*node) *node {
	if n == nil || copies[n] != nil {
		return copies[n]
	}
	c := &node{number: n.number, folder: n.folder, data: slices.Clone(n.data), changes: slices.Clone(n.changes)}
	copies[n] = c
	c.synced.data = n.synced.data // it never changes
	c.names, c.synced.names = copyNames(n.names, copies), copyNames(n.synced.names, copies)
	for i := range c.changes {
		c.changes[i].node = c.changes[i].node.copy(copies)
	}
	return c
}

func copyNames(names map[string]*node, copies map[*node]*node) map[string]*node {
	c := make(map[string]*node, len(names))
	for name, n := range names {
		c[name] = n.copy(copies)
	}
	return c
}

// lose goes back to the last sync, and makes some of the changes since.
func (n *node) lose(loss Loss) {
	n.data, n.names = slices.Clone(n.synced.data), maps.Clone(n.synced.names)
	lost := map[int64]bool{} // sectors
	for _, ch := range n.changes {
		switch {
		case n.folder:
			if !loss.keeps() {
				n.sync()
				return
			}
			ch.set(n.names)
		case ch.resize && loss.keeps():
			n.data = ch.write(n.data)
		case ch.resize:
		default:
			for len(ch.data) > 0 {
				part := change{data: ch.data[:min(len(ch.data), sector-int(ch.at%sector))], at: ch.at}
				if lost[ch.at/sector] = lost[ch.at/sector] || !loss.keeps(); !lost[ch.at/sector] {
					n.data = part.write(n.data)
				}
				ch.at += int64(len(part.data))
				ch.data = ch.data[len(part.data):]
			}
		}
	}
	n.sync()
}

// Write writes the files of the disk, synced or not, to a folder of this machine.
func (d *Disk) Write(dir string) error { return d.root.writeTo(dir) }

func (n *node) writeTo(name string) error {
	if !n.folder {
		return os.WriteFile(name, n.data, 0o600)
	}
	if err := os.MkdirAll(name, 0o700); err != nil {
		return err
	}
	for part, child := range n.names {
		if err := child.writeTo(filepath.Join(name, part)); err != nil {
			return err
		}
	}
	return nil
}
