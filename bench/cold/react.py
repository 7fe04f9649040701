"""What Lambda does before `react` sees its first event, and what the first call then makes."""

from sharewarden.bootstrap import lambda_runtime

import functions.react.app  # noqa: F401 (its import is what is measured)

lambda_runtime()
