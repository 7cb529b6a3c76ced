# Takes the values of enumerations from what `kubectl explain` prints: the
# embedded server does not publish them.
exec sed -e '/^ *enum: /d' -e '/^ *Possible enum values:/,/^$/d'
