package dataset

// Hit is the newest visible point of an entity, not decoded yet.
type Hit struct {
	Path    string
	Units   int64
	ID      string
	Payload []byte
	Tag     int
	Err     error // why the payload cannot be decoded
}
