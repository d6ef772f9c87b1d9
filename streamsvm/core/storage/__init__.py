"""Room for an expansion: making, widening and squeezing its arrays.

Everything that allocates or moves memory is here, in plain numpy, and runs between two calls of compiled code.  Start
with `members`: an empty expansion and what one holds.  `room` makes place for new members and squeezes out the old,
with `features` and `cached` for the two large parts.  The folder imports `blocks`, `expansion`, `rows` and `scaling`.
"""

from streamsvm.core.expansion import find_extremes as find_extremes
from streamsvm.core.storage.cached import at_least as at_least
from streamsvm.core.storage.cached import row_width as row_width
from streamsvm.core.storage.cached import without_rows as without_rows
from streamsvm.core.storage.features import grown as grown
from streamsvm.core.storage.features import list_features as list_features
from streamsvm.core.storage.features import with_features as with_features
from streamsvm.core.storage.features import with_raw as with_raw
from streamsvm.core.storage.members import clear_room as clear_room
from streamsvm.core.storage.members import copy as copy
from streamsvm.core.storage.members import empty as empty
from streamsvm.core.storage.members import features_of as features_of
from streamsvm.core.storage.members import is_stored as is_stored
from streamsvm.core.storage.members import live_slots as live_slots
from streamsvm.core.storage.members import n_members as n_members
from streamsvm.core.storage.members import owned as owned
from streamsvm.core.storage.members import raw_rows_of as raw_rows_of
from streamsvm.core.storage.members import rows_of as rows_of
from streamsvm.core.storage.members import with_own_coefficients as with_own_coefficients
from streamsvm.core.storage.room import keep as keep
from streamsvm.core.storage.room import require_room as require_room
from streamsvm.core.storage.room import reserve as reserve
