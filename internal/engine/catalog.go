package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"strings"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"github.com/cockroachdb/pebble/v2"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/internal/engine/rowfilter"
)

// loadTables reads all tables and views.
func (e *Engine) loadTables() error {
	next, _, err := readNumber(e.db, keyNextTable(), 4, "table counter")
	if err != nil {
		return err
	}
	e.nextTable = uint32(next)
	tables := make(map[string]*table)
	err = e.eachRecord(keyTable(""), func(name string, value []byte) error {
		r, err := decodeTable(value)
		if err != nil {
			return err
		}
		s, err := schemaOf(r)
		if err != nil {
			return err
		}
		if r.ID >= e.nextTable {
			return fmt.Errorf("%w: table %q has number %d, the next is %d", ErrDamaged, name, r.ID, e.nextTable)
		}
		t := &table{id: r.ID, name: name}
		t.schema.Store(s)
		tables[name] = t
		return nil
	})
	if err != nil {
		return err
	}
	for _, t := range tables {
		views := make(map[string]*view)
		err := e.eachRecord(keyViews(t.id), func(name string, value []byte) error {
			p, err := decodeView(value)
			if err != nil {
				return err
			}
			views[name] = newView(p)
			return nil
		})
		if err != nil {
			return err
		}
		t.views.Store(&views)
	}
	e.tables.Store(&tables)
	return nil
}

// eachRecord calls fn for each key with the prefix; name is the rest of the key.
func (e *Engine) eachRecord(prefix []byte, fn func(name string, value []byte) error) error {
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: rowfilter.PrefixEnd(prefix)})
	if err != nil {
		return storageError(err)
	}
	for it.First(); it.Valid(); it.Next() {
		if err := fn(string(it.Key()[len(prefix):]), it.Value()); err != nil {
			return errors.Join(err, it.Close())
		}
	}
	if err := it.Close(); err != nil {
		return storageError(err)
	}
	return nil
}

// saveTable adds a table's record to a batch.
func saveTable(b *pebble.Batch, t *table, s *schema) error {
	r, err := s.record(t.id)
	if err != nil {
		return err
	}
	value, err := encodeTable(r)
	if err != nil {
		return err
	}
	return b.Set(keyTable(t.name), value, nil)
}

// saveNextTable adds the counter of tables to a batch.
func saveNextTable(b *pebble.Batch, next uint32) error {
	return b.Set(keyNextTable(), binary.BigEndian.AppendUint32(nil, next), nil)
}

// setTable publishes a table, or its removal. The caller holds admin.
func (e *Engine) setTable(name string, t *table) {
	next := maps.Clone(*e.tables.Load())
	if t == nil {
		delete(next, name)
	} else {
		next[name] = t
	}
	e.tables.Store(&next)
}

// table finds a table by its full name.
func (e *Engine) table(name string) (*table, error) {
	if t := (*e.tables.Load())[name]; t != nil {
		return t, nil
	}
	return nil, notFoundf("Table %q not found", name)
}

// target is the object of a data request: a table, and the view through which it is accessed, if any.
type target struct {
	table *table
	view  *view
}

const viewsPart = "/authorizedViews/"

// target finds the table and view of a data request. Exactly one of the names must be set.
func (e *Engine) target(tableName, viewName, materialized string) (target, error) {
	switch {
	case materialized != "":
		return target{}, unimplementedf("Materialized views are not offered")
	case tableName != "" && viewName != "":
		return target{}, invalidf("Both table_name and authorized_view_name are set")
	case viewName == "":
		t, err := e.table(tableName)
		return target{table: t}, err
	}
	t, v, err := e.viewByName(viewName)
	return target{table: t, view: v}, err
}

// viewByName finds an authorized view by its full name.
func (e *Engine) viewByName(name string) (*table, *view, error) {
	tableName, id, ok := strings.Cut(name, viewsPart)
	if !ok {
		return nil, nil, invalidf("Authorized view name %q: want projects/…/tables/…/authorizedViews/…", name)
	}
	t, err := e.table(tableName)
	if err != nil {
		return nil, nil, err
	}
	v := (*t.views.Load())[id]
	if v == nil {
		return nil, nil, notFoundf("Authorized view %q not found", name)
	}
	return t, v, nil
}

// message returns the table as the admin API shows it.
func (t *table) message(view adminpb.Table_View) *adminpb.Table {
	s := t.schema.Load()
	m := &adminpb.Table{Name: t.name}
	switch view {
	case adminpb.Table_NAME_ONLY:
	case adminpb.Table_REPLICATION_VIEW, adminpb.Table_ENCRYPTION_VIEW:
		m.ClusterStates = clusterStates()
	case adminpb.Table_FULL:
		m.ClusterStates = clusterStates()
		fallthrough
	default:
		m.ColumnFamilies = s.columnFamilies()
		m.Granularity = s.granularity
		m.DeletionProtection = s.protected
		m.TieredStorageConfig = proto.CloneOf(s.tiers)
		m.ChangeStreamConfig = proto.CloneOf(s.changes)
	}
	return m
}

// clusterStates returns the state of the only cluster.
func clusterStates() map[string]*adminpb.Table_ClusterState {
	return map[string]*adminpb.Table_ClusterState{
		"local": {ReplicationState: adminpb.Table_ClusterState_READY},
	}
}
