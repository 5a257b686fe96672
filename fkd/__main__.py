"""`python -m fkd` is the daemon."""

import sys

from fkd.daemon import main

sys.exit(main())
