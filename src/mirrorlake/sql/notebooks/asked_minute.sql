-- A time that the user gave, as the text of its minute; null for what is no time. Parameters: minute.
SELECT date_format(date_trunc('MINUTE', try_cast(:minute AS TIMESTAMP)), 'yyyy-MM-dd HH:mm:ss.SSSXXX') AS minute
