package private

// ChangedBy returns the folders that are synced after a folder and its missing parents were created.
var ChangedBy = changedBy
